-- Posts the request in the environment repeatedly, and prints the results as JSON.

wrk.method = "POST"
wrk.body = os.getenv("BENCHMARK_BODY")
for line in os.getenv("BENCHMARK_FIELDS"):gmatch("[^\n]+") do
  local name, value = line:match("^([^:]+): (.*)$")
  wrk.headers[name] = value
end

function done(summary, latency)
  local errors = summary.errors
  io.write(string.format(
    '\n{"requests":%d,"seconds":%.6f,"median":%.6f,"slowest":%.6f,"failed":%d}\n',
    summary.requests, summary.duration / 1e6,
    latency:percentile(50) / 1e6, latency:percentile(99) / 1e6,
    errors.connect + errors.read + errors.write + errors.status + errors.timeout
  ))
end
