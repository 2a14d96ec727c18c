// The same as vdso_x86_64.S, which explains how it works.
// aarch64-linux-gnu-as -o o vdso_aarch64.S && aarch64-linux-gnu-objcopy -O binary -j .text o code

        .text
gettime:                                // int clock_gettime(w0: clock, x1: timespec)
        mov     x8, #113
        mov     w9, w0
        mov     x10, x1
        svc     #0
        cbnz    x0, 5f
        cmp     w9, #11
        b.hi    5f
        mov     w11, #1
        lsl     w11, w11, w9
        mov     x13, #0
        mov     w12, #0x821
        tst     w11, w12
        b.ne    1f
        mov     x13, #24
        mov     w12, #0xd2
        tst     w11, w12
        b.eq    5f
1:      adr     x14, turn
        adr     x15, lines
        mov     x16, #48
2:      ldarb   w12, [x14]              // turn, read before its table,
        and     x11, x12, #1
        madd    x11, x11, x16, x13
        add     x11, x11, x15
        ldp     x2, x3, [x11]           // real_from, shown_from
        ldr     x4, [x11, #16]          // rate
        dmb     ishld                   // and again after it
        ldrb    w8, [x14]
        cmp     w8, w12
        b.ne    2b
        ldp     x5, x6, [x10]
        movz    x7, #0xca00
        movk    x7, #0x3b9a, lsl #16    // 1000000000
        madd    x5, x5, x7, x6
        sub     x5, x5, x2
        smulh   x6, x5, x4
        mul     x5, x5, x4
        extr    x5, x6, x5, #32
        add     x5, x5, x3
        sdiv    x6, x5, x7
        msub    x8, x6, x7, x5
        tbz     x8, #63, 4f
        add     x8, x8, x7
        sub     x6, x6, #1
4:      stp     x6, x8, [x10]
        mov     x0, #0
5:      ret

        .balign 16
timeofday:                              // int gettimeofday(x0: timeval, x1: timezone)
        stp     x29, x30, [sp, #-48]!
        stp     x0, x1, [sp, #16]
        cbz     x0, 6f
        mov     x0, #0
        add     x1, sp, #32
        bl      gettime
        ldp     x2, x3, [sp, #32]
        mov     x4, #1000
        udiv    x3, x3, x4
        ldr     x0, [sp, #16]
        stp     x2, x3, [x0]
6:      ldr     x1, [sp, #24]
        cbz     x1, 7f
        str     xzr, [x1]
7:      mov     x0, #0
        ldp     x29, x30, [sp], #48
        ret

        .balign 16
turn:   .quad   0
lines:
