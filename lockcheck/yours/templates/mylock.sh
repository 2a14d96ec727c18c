#!/bin/bash
# The client of a lock, for lockcheck: lockcheck validate --client ./mylock.sh
#
# It reads requests from its input and prints answers, one JSON object a line: docs/protocol.md.
# As it stands, the lock is a key in Redis with a lease, set if it is not there, and removed by its
# owner alone. Put your own in the three places.

field() { [[ $line =~ \"$1\":\ ?\"?([^\",}]*) ]] && echo "${BASH_REMATCH[1]}"; }
say() { printf '{"src":"client","dest":"lockcheck","body":{"type":"%s","in_reply_to":%s%s}}\n' "$1" "$id" "$2"; }
failed() { say error ",\"code\":$1,\"text\":\"$2\""; }

redis() { # in Redis' protocol; sets $answer, within a second
  answer=$(
    { printf '*%d\r\n' $#; for word; do printf '$%d\r\n%s\r\n' ${#word} "$word"; done; } |
      timeout 1 bash -c 'exec 3<>"/dev/tcp/$0/$1" && cat >&3 && head -n 1 <&3' "$host" "$port"
  ) 2>/dev/null
  [[ $answer == [+:$]* ]] # else an error, or nothing
}

while read -r line; do
  id=$(field msg_id) key=$(field key)
  case $(field type) in
    init)
      # 1. Connect: the servers are host:port.
      [[ $line =~ \"servers\":\ ?\[\"([^\"]+) ]] && IFS=: read -r host port <<<"${BASH_REMATCH[1]}"
      ttl_ms=$(field ttl_ms) me=$(field node_id)-$EPOCHREALTIME
      say init_ok ;;
    acquire)
      # 2. Granted, held, or it may have happened.
      if ! redis SET "lock:$key" "$me-$id" NX PX "$ttl_ms"; then failed 13 "no answer"
      elif [[ $answer == +OK* ]]; then say acquire_ok
      else failed 22 held; fi ;;
    release)
      # 3. Released, not ours any more, or it may have happened.
      remove='return redis.call("GET", KEYS[1]) == ARGV[1] and redis.call("DEL", KEYS[1]) or 0'
      if ! redis EVAL "$remove" 1 "lock:$key" "$me-$(field acquire)"; then failed 13 "no answer"
      elif [[ $answer == :1* ]]; then say release_ok
      else failed 20 "not ours any more"; fi ;;
    leave) ;;
    *) failed 10 "unknown request" ;;
  esac
done
