# The code to which the time functions of a process's vDSO are redirected. vdso_code.py holds it as
# bytes: `as -o o vdso_x86_64.S && objcopy -O binary -j .text o code`; a test compares the two.
#
# What the kernel's clock shows is mapped by a line for each clock, wall and monotonic:
#     shown = shown_from + (real - real_from) * rate, with the rate in units of 1/2^32
# There are two tables of these lines; the lowest bit of `turn` selects the one in effect. A writer
# fills the other table and then adds 1 to `turn`: one byte, so the change is atomic. A reader that
# finds another `turn` after reading than before reads again.

        .intel_syntax noprefix
        .text
gettime:                                # int clock_gettime(edi: clock, rsi: timespec)
        mov     eax, 228
        syscall
        test    eax, eax
        jnz     5f
        cmp     edi, 11
        ja      5f                      # a CPU-time clock or another one: unchanged
        xor     r8d, r8d                # the line for the wall clock comes first,
        mov     ecx, 0x821              # REALTIME 0, REALTIME_COARSE 5, TAI 11
        bt      ecx, edi
        jc      1f
        mov     r8d, 24                 # and then the one for the monotonic clock
        mov     ecx, 0xd2               # MONOTONIC 1, RAW 4, COARSE 6, BOOTTIME 7
        bt      ecx, edi
        jnc     5f
1:      lea     r9, [rip + lines]
2:      movzx   r10d, byte ptr [rip + turn]
        mov     ecx, r10d
        and     ecx, 1
        imul    ecx, ecx, 48
        add     rcx, r8
        add     rcx, r9
        mov     rax, [rcx]              # real_from
        mov     rdx, [rcx + 8]          # shown_from
        mov     r11, [rcx + 16]         # rate
        cmp     r10b, byte ptr [rip + turn]
        jne     2b
        mov     r8, rdx
        imul    rcx, [rsi], 1000000000
        add     rcx, [rsi + 8]
        sub     rcx, rax
        mov     rax, rcx
        imul    r11                     # in 128 bits
        shrd    rax, rdx, 32
        add     rax, r8
        cqo
        mov     ecx, 1000000000
        idiv    rcx
        test    rdx, rdx
        jns     4f
        add     rdx, rcx                # before 1970: nanoseconds stay positive
        dec     rax
4:      mov     [rsi], rax
        mov     [rsi + 8], rdx
        xor     eax, eax
5:      ret

        .balign 16
timeofday:                              # int gettimeofday(rdi: timeval, rsi: timezone)
        push    rdi
        push    rsi
        sub     rsp, 24
        test    rdi, rdi
        jz      6f
        xor     edi, edi
        mov     rsi, rsp
        call    gettime
        mov     rdi, [rsp + 32]
        mov     rax, [rsp]
        mov     [rdi], rax
        mov     rax, [rsp + 8]
        xor     edx, edx
        mov     ecx, 1000
        div     rcx
        mov     [rdi + 8], rax
6:      mov     rsi, [rsp + 24]
        test    rsi, rsi
        jz      7f
        mov     qword ptr [rsi], 0
7:      xor     eax, eax
        add     rsp, 40
        ret

        .balign 16
seconds:                                # time_t time(rdi: time_t *, or NULL)
        push    rdi
        sub     rsp, 16
        xor     edi, edi
        mov     rsi, rsp
        call    gettime
        mov     rax, [rsp]
        add     rsp, 16
        pop     rdi
        test    rdi, rdi
        jz      8f
        mov     [rdi], rax
8:      ret

        .balign 16
turn:   .quad   0
lines:  # 2 tables of 2 lines of 3 numbers follow
