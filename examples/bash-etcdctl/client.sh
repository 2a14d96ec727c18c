#!/bin/bash
# `etcdctl lock`, as a client of lockcheck: a process for each hold, which keeps its session alive.

say() { printf '{"src":"client","dest":"lockcheck","body":{"type":"%s"%s}}\n' "$1" "$2"; }
failed() { say error ",\"in_reply_to\":$id,\"code\":$1,\"text\":\"$2\""; }
field() { [[ $line =~ \"$1\":\ ?\"?([^\",}]*) ]] && echo "${BASH_REMATCH[1]}"; }

ended() { # within two seconds: by itself, so it has unlocked
  for _ in {1..40}; do
    kill -0 "$1" 2>/dev/null || return 0
    read -rt 0.05 <> <(:)
  done
  kill -9 "$1"
  return 1
}

acquire() { # it prints the lock's key once it is granted
  local wait_ms=$(($(field wait_ms) > 500 ? $(field wait_ms) : 500)) out seen
  exec {out}< <(exec etcdctl --endpoints="$servers" -w json lock --ttl="$ttl" "$(field key)")
  pids[$id]=$!
  if ! read -rt "$((wait_ms / 1000)).$(printf %03d $((wait_ms % 1000)))" -u "$out" seen; then
    kill "${pids[$id]}" 2>/dev/null
    if ended "${pids[$id]}"; then failed 22 "waited in vain"; else failed 13 "it did not end"; fi
  elif [[ $seen =~ \"create_revision\":([0-9]+) ]]; then
    say acquire_ok ",\"in_reply_to\":$id,\"token\":${BASH_REMATCH[1]}"
    { cat >/dev/null; say lost ",\"acquire\":$id,\"text\":\"etcdctl has ended\""; } <&"$out" &
  else failed 13 "etcdctl printed something else"; fi
  exec {out}<&-
}

release() {
  local pid=${pids[$(field acquire)]}
  if ! kill "$pid" 2>/dev/null; then failed 20 "its session was over"
  elif ended "$pid"; then say release_ok ",\"in_reply_to\":$id"
  else failed 13 "it did not end"; fi
}

declare -A pids # by the numbers of their acquires
while read -r line; do
  id=$(field msg_id)
  case $(field type) in
    describe)
      say describe_ok ",\"in_reply_to\":$id,\"name\":\"etcdctl-lock\",\"servers\":\"etcd\",
        \"promises\":[\"session\",\"waits\",\"fair\",\"token\",\"ttl-step=1s\"]" | tr -d '\n'
      echo ;;
    init)
      [[ $line =~ \"servers\":\ ?\[([^]]*)\] ]] && servers=${BASH_REMATCH[1]//[\" ]/}
      ttl=$(($(field ttl_ms) / 1000))
      say init_ok ",\"in_reply_to\":$id" ;;
    acquire) acquire ;;
    release) release ;;
    leave) kill "${pids[$(field acquire)]}" 2>/dev/null ;;
    *) failed 10 "unknown request" ;;
  esac
done
kill "${pids[@]}" 2>/dev/null
exit 0
