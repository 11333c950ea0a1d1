/**
 * Files whose long form compares times or memory with strict figures. A complete long run begins with them, one at a time and with nothing beside them:
 * beside others they would measure the machine.
 */
export const MEASURING_TESTS: readonly string[] = [
  'src/upstreams/faults.test.ts',
  'test/behaviours/sender-overload.test.ts',
  'test/faults/clickhouse-silent.test.ts',
  'test/faults/execution-storm.test.ts',
  'test/faults/gateway-http.test.ts',
  'test/faults/gateway-leave.test.ts',
  'test/faults/gateway-machine.test.ts',
  'test/faults/gateway-storm.test.ts',
  'test/faults/gateway-ws.test.ts',
  'test/faults/serve-databases.test.ts',
  'test/faults/serve-disk.test.ts',
  'test/faults/serve-store.test.ts',
  'test/faults/silent-node.test.ts',
  'test/threats/guesses.test.ts',
  'test/threats/held-responses.test.ts',
  'test/threats/requests.test.ts',
  'test/threats/slow-clients.test.ts',
  'test/threats/token-timing.test.ts',
  'test/threats/work-budget.test.ts',
]
