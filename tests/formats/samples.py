"""One small history in every format."""

from __future__ import annotations

SPAN = (
    '{"name":"acquire","startTimeUnixNano":"5","endTimeUnixNano":"9","attributes":'
    '[{"key":"lock.client","value":{"intValue":"3"}},{"key":"lock.key","value":'
    '{"stringValue":"k"}}]}'
)
SAMPLES = {
    "jsonl": (
        '{"time":0,"process":"run","type":"info","f":"terms","value":{"model":"mutex"}}\n'
        '{"time":5,"process":3,"type":"invoke","f":"acquire","key":"k"}\n'
        '{"time":9,"process":3,"type":"ok","f":"acquire","key":"k"}\n'
    ),
    "jepsen-json": (
        '[{"index":0,"time":5,"process":3,"type":"invoke","f":"acquire","key":"k"},\n'
        '{"index":1,"time":9,"process":3,"type":"ok","f":"acquire","key":"k"}]\n'
    ),
    "edn": (
        "; a history\n"
        '{:process 3, :type :invoke, :f :acquire, :key "k", :time 5, :value nil}\n'
        '#jepsen.history.Op{:process 3, :type :ok, :f :acquire, :key "k", :time 9, '
        ':value {:fence 4, :at #inst "2020-01-01"}}\n'
    ),
    "txt": "3\t:invoke\t:cas\t[1 2]\n:nemesis\t:info\t:start\tnil\n3\t:ok\t:cas\t[1 2]\n",
    "log": (
        "INFO  jepsen.core - hello\n"
        "INFO  jepsen.util - 3\t:invoke\t:write\t1\n"
        "INFO  jepsen.util - 3\t:info\t:write\t:timed-out\n"
    ),
    "csv": (
        "client,key,op,start_ns,end_ns,outcome,token,value\n"
        '3,k,acquire,1700000000000000000,1700000000000000009,ok,4,"[1, 2]"\n'
        "3,k,release,1700000000000000009,,,,\n"
    ),
    "otlp": '{"resourceSpans":[{"scopeSpans":[{"spans":[' + SPAN + "]}]}]}\n",
}
