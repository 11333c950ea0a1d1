-- For wrk: one JSON-RPC call with a token, again and again. Answers that are not 200 are counted by wrk itself.
wrk.method = "POST"
wrk.body = os.getenv("BENCH_BODY")
wrk.headers["Content-Type"] = "application/json"
wrk.headers["x-token"] = os.getenv("BENCH_TOKEN")
