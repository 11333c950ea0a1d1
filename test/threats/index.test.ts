import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { testNames } from '../test-names.ts'

const ROOT = join(import.meta.dirname, '../..')

/** The tests of each row in the tables of threats, faults and regressions of an earlier gateway: file, and the beginning of the test's name. */
const HELD: Readonly<Record<string, readonly (readonly [string, string])[]>> = {
  T1: [
    ['test/threats/guesses.test.ts', 'T1: '],
    ['test/behaviours/auth-tarpit.test.ts', 'guessing tokens'],
  ],
  T2: [
    ['test/threats/token-timing.test.ts', 'T2: a token close to a valid one takes as long as any other unknown token'],
    ['src/access/callers.test.ts', 'every kind of bad token costs the same work'],
  ],
  T3: [
    ['test/threats/canaries.test.ts', 'T3: '],
    ['test/behaviours/token-shown-once.test.ts', ''],
  ],
  T4: [['test/threats/credentials.test.ts', 'T4: ']],
  T5: [
    ['test/threats/smuggling.test.ts', 'T5: request smuggling'],
    ['src/platform/http/server/server.test.ts', 'refuses hostile heads with their own status'],
  ],
  T6: [
    ['test/threats/requests.test.ts', 'T6: '],
    ['src/platform/net/client-address.test.ts', 'without trusted proxies x-forwarded-for is ignored'],
  ],
  T7: [['test/threats/requests.test.ts', 'T7: ']],
  T8: [['test/threats/requests.test.ts', 'T8: ']],
  T9: [
    ['test/threats/slow-clients.test.ts', 'T9: slow heads, slow bodies'],
    ['src/platform/http/server/server.test.ts', 'responds 408 to a slow head, a silent socket and a slow body'],
  ],
  T10: [
    ['test/threats/stalled-readers.test.ts', 'T10: stalled WebSocket readers'],
    ['src/platform/ws/server.test.ts', 'terminates a client that reads nothing after stallMs'],
  ],
  T11: [
    ['test/threats/ws-frames.test.ts', 'T11: '],
    ['test/threats/ws-deflate.test.ts', 'T11: '],
    ['src/platform/ws/socket.test.ts', 'of thousands of messages in one write'],
    ['src/gateway/pubsub/client.test.ts', 'pauses a new connection where its subscription is over'],
  ],
  T12: [
    ['test/threats/grpc-flood.test.ts', 'T12: '],
    ['test/behaviours/grpc-gateway-hostile.test.ts', 'ten thousand streams opened and reset'],
  ],
  T13: [
    ['test/threats/quota.test.ts', 'T13: '],
    ['src/access/admission.model.test.ts', 'charged units equal admitted units exactly'],
    ['src/gateway/rpc/rpc.test.ts', 'requests that a node refuses as '],
  ],
  T14: [
    ['src/indexer/duckdb/sql-policy.property.test.ts', 'T14: '],
    ['src/indexer/duckdb/sql-policy.test.ts', 'T14: '],
    ['src/indexer/clickhouse/policy/policy.test.ts', 'T14: '],
    ['test/behaviours/indexer-clickhouse-hostile.test.ts', 'T14: '],
    ['src/indexer/duckdb/sql-policy-names.test.ts', 'T14: '],
    ['src/indexer/duckdb/sql-policy.fuzz.test.ts', 'T14: '],
    ['src/indexer/clickhouse/policy/policy.fuzz.test.ts', 'T14: '],
    ['src/indexer/duckdb/query-locks.test.ts', 'T14: '],
  ],
  T15: [
    ['test/threats/whole-sluice.test.ts', 'T15: '],
    ['test/behaviours/indexer-credentials.test.ts', 'T15: no query returns data of another customer'],
    ['test/behaviours/connections.test.ts', 'of another subscription get the same response'],
    ['test/behaviours/own-usage.test.ts', 'sums are those of the calls'],
  ],
  T16: [
    ['test/threats/reflection.test.ts', 'T16: '],
    ['src/shreds/service.test.ts', 'a destination that waits for its proof gets challenges only'],
    ['src/shreds/destinations/challenge.test.ts', 'only the destination itself'],
  ],
  T17: [
    ['test/threats/upstream-address.test.ts', 'T17: '],
    ['src/platform/net/pinned-address.test.ts', 'refuses a name that moves to a forbidden address'],
  ],
  T18: [
    ['src/solana/transaction/tip.test.ts', 'the table has at least 25 cases in every format'],
    ['test/behaviours/sender-refusals.test.ts', 'refusals of the public endpoint'],
    ['test/behaviours/sender-overload.test.ts', ''],
  ],
  T19: [['test/page/hostile.test.ts', 'have no effect as names, as hex of a hostile service']],
  T20: [
    ['test/threats/whole-sluice.test.ts', 'T20: '],
    ['src/cli/commands/operate/run/log-lines.test.ts', 'a record is one readable line'],
    ['test/behaviours/cli-manners.test.ts', 'piped output has no colours, and control characters'],
  ],
  T21: [
    ['test/threats/whole-sluice.test.ts', 'T21: '],
    ['src/platform/telemetry/metrics-registry.test.ts', 'labels stay bounded under 10,000 random values'],
    ['src/gateway/metrics.test.ts', 'keeps every metric family small enough'],
  ],
  T22: [['test/supply-chain.test.ts', 'supply chain']],
  T23: [
    ['test/threats/whole-sluice.test.ts', 'T23: the control socket'],
    ['test/threats/whole-sluice.test.ts', 'T23: a secret in a file'],
    ['src/platform/files/state-folder.test.ts', 'secret files must be 0600'],
  ],
  T24: [
    ['test/threats/whole-sluice.test.ts', 'T24: '],
    ['test/behaviours/execution-spec.test.ts', 'T24, T26: '],
  ],
  T25: [['test/behaviours/execution-time.test.ts', 'R8, T25: ']],
  T26: [
    ['test/behaviours/execution-spec.test.ts', 'T24, T26: '],
    ['test/page/hostile.test.ts', 'another origin may read, but never with credentials'],
  ],
  T27: [
    ['test/behaviours/execution-work.test.ts', '100 eth_getLogs over all blocks'],
    ['test/behaviours/execution-work.test.ts', 'JSON-RPC: 429 with Retry-After in seconds'],
    ['test/behaviours/execution-work.test.ts', 'reads, page and metrics: 429'],
    ['test/behaviours/execution-stream-work.test.ts', 'is charged: a client that replays'],
    ['test/behaviours/execution-stream-work.test.ts', 'subscribe messages are charged'],
  ],
  T28: [
    ['test/threats/grpc-bombs.test.ts', 'the health service accepts'],
    ['test/threats/grpc-bombs.test.ts', 'refuses a bomb on a stream or a unary method'],
    ['test/threats/grpc-bombs.test.ts', 'refuses a request over the inflate ratio'],
    ['src/gateway/geyser/health.test.ts', ''],
  ],
  T29: [
    ['test/growth.test.ts', 'T29: '],
    ['src/indexer/query/sql-tokens.test.ts', 'T29: '],
  ],
  T30: [
    ['test/threats/held-responses.test.ts', 'T30: '],
    ['test/behaviours/held-bytes.test.ts', 'limits the bytes of held requests and responses'],
    ['src/indexer/http.test.ts', 'bodies that are not complete count as held bytes'],
    ['test/behaviours/ws-limits.test.ts', 'holds the responses of calls within the byte budget'],
    ['test/behaviours/indexer-results.test.ts', 'hold permits of their own subscription only'],
    ['src/platform/process/memory-guard.test.ts', 'resident memory that is not in use refuses nothing'],
  ],
  T31: [
    ['src/indexer/query/executor.test.ts', 'a cheap query of the offender in between does not shift the blame'],
    ['test/behaviours/indexer-kills.test.ts', 'a customer whose query exhausts the memory of the database process'],
  ],
  T32: [
    ['test/threats/shared-work.test.ts', 'never shares a subscription whose params'],
    ['test/threats/shared-work.test.ts', 'uses a cached response only for calls'],
    ['test/threats/shared-work.test.ts', 'sends a refusal of the node only to'],
  ],
  T33: [['src/indexer/duckdb/query-runner.test.ts', 'beside four large results a short query']],
  T34: [
    ['test/threats/sender-unpaid.test.ts', 'a payer without lamports is refused'],
    ['test/threats/sender-unpaid.test.ts', 'an invented nonce is refused'],
    ['test/threats/sender-flood.test.ts', 'transactions in flight are limited'],
    ['test/threats/sender-flood.test.ts', 'waits for receipts are limited'],
  ],
  T35: [
    ['test/behaviours/rpc-ids.test.ts', 'in results, errors of the node'],
    ['test/behaviours/rpc-ids.test.ts', 'over WebSocket'],
    ['test/threats/sender-requests.test.ts', 'returns an id byte for byte'],
    ['src/evm/event/exec-event.test.ts', ''],
  ],
  T36: [
    ['test/behaviours/ws-handshake.test.ts', 'of the gateway responds to calls'],
    ['src/platform/ws/handshake.test.ts', ''],
  ],
  T37: [
    ['src/platform/http/server/pipeline-queue.test.ts', 'writes 100 Continue of a pipelined request'],
    ['src/platform/http/client/pool.test.ts', 'closes an idle connection on unsolicited bytes'],
    ['src/platform/http/server/fast-path.test.ts', 'heads and bodies in pieces stay with their connection'],
  ],
  T38: [
    ['test/threats/grpc-bombs.test.ts', 'refuses an unknown field by its number'],
    ['test/threats/grpc-bombs.test.ts', 'refuses a method whose selection the plan cannot check'],
  ],
  T39: [['test/threats/work-budget.test.ts', 'T39: ']],
  T40: [['test/behaviours/execution-cross-origin.test.ts', 'POST / is granted to configured origins']],
  T41: [['src/platform/http/server/operator-listener.test.ts', 'refuses a request with a foreign Host']],
  T42: [
    ['src/admin/oidc/id-token.test.ts', 'refused: '],
    ['src/admin/oidc/sign-in.test.ts', 'a state is used once'],
    ['src/admin/oidc/issuer.test.ts', 'an issuer that is down'],
  ],
  T43: [
    ['src/shreds/relay/relay-window.test.ts', 'three packets of rising slots'],
    ['src/shreds/relay/relay-window.test.ts', 'of several sources the live one'],
    ['src/shreds/relay/relay-window.test.ts', 'beside signed packets those that cannot be checked'],
  ],
  F1: [
    ['test/faults/gateway-http.test.ts', 'F1: '],
    ['src/upstreams/faults.test.ts', 'F1: '],
  ],
  F2: [
    ['test/faults/gateway-http.test.ts', 'F2: '],
    ['src/upstreams/faults.test.ts', 'F2: '],
  ],
  F3: [
    ['test/faults/gateway-http.test.ts', 'F3: '],
    ['src/upstreams/faults.test.ts', 'F3: '],
  ],
  F4: [
    ['test/faults/gateway-http.test.ts', 'F4: '],
    ['src/upstreams/faults.test.ts', 'F4: '],
    ['src/platform/ws/client.test.ts', 'F4: '],
    ['src/platform/grpc/client.test.ts', 'F4: '],
  ],
  F5: [
    ['test/faults/gateway-http.test.ts', 'F5: '],
    ['src/upstreams/faults.test.ts', 'F5: '],
  ],
  F6: [
    ['test/faults/gateway-ws.test.ts', 'F6: '],
    ['src/upstreams/ws/links.test.ts', 'F6: '],
    ['test/behaviours/ws-gateway-loss.test.ts', 'loses none of several hundred'],
  ],
  F7: [
    ['test/faults/serve-store.test.ts', 'F7: '],
    ['test/behaviours/store-away.test.ts', 'an unreachable shared store is reported'],
  ],
  F8: [
    ['test/faults/serve-disk.test.ts', 'F8: '],
    ['src/access/store/store.disk-full.test.ts', 'on a full disk a change is refused'],
    ['src/platform/telemetry/log-sink.test.ts', 'a full disk loses lines; their number is logged'],
    ['test/faults/usage-small-disk.test.ts', 'on a full disk usage of the embedded store is kept'],
    ['test/faults/indexer-disk-full.test.ts', 'on a full disk the indexer reports by name'],
  ],
  F9: [['src/access/store/store.damage.test.ts', 'a damaged store file']],
  F10: [
    ['test/faults/serve-clock.test.ts', 'F10, R9: '],
    ['src/access/quota/calendar.test.ts', 'jumps of an hour and a day'],
    ['test/behaviours/execution-time.test.ts', 'R9: wall clock jumps'],
  ],
  F11: [
    ['test/faults/gateway-leave.test.ts', 'F11: '],
    ['test/faults/usage-outage.test.ts', 'a store that stops responding does not hold SIGTERM'],
  ],
  F12: [
    ['test/faults/serve-store.test.ts', 'F12: '],
    ['src/access/store/store.writers.test.ts', 'one killed at'],
    ['test/faults/usage-outage.test.ts', 'a kill during the outage loses nothing'],
  ],
  F13: [
    ['test/behaviours/ring-live.test.ts', 'a live ring, read too slowly'],
    ['src/evm/ring/reader.property.test.ts', 'under concurrent writers'],
  ],
  F14: [['test/faults/execution-storm.test.ts', 'F14: ']],
  F15: [['test/behaviours/execution-time.test.ts', 'R8, T25: ']],
  F16: [
    ['test/faults/serve-databases.test.ts', 'F16: '],
    ['test/faults/usage-outage.test.ts', 'sluice drain keeps it on the disk'],
    ['test/faults/clickhouse-silent.test.ts', 'F16: '],
    ['src/access/quota/shared-ledger.redis.test.ts', 'after the server is killed and restarted'],
    ['src/platform/db/redis.test.ts', 'fails at once while the server is down'],
  ],
  F17: [
    ['test/faults/gateway-machine.test.ts', 'F17: '],
    ['src/platform/net/overload-response.test.ts', 'responds to few at a time'],
    ['src/platform/net/listener.test.ts', 'out of descriptors'],
  ],
  F18: [['test/faults/gateway-leave.test.ts', 'F18: ']],
  F19: [
    ['test/faults/gateway-machine.test.ts', 'F19: '],
    ['test/faults/certificate-end.test.ts', 'F19: '],
    ['src/platform/net/listener.test.ts', 'loads a renewed certificate'],
  ],
  F20: [['test/behaviours/serve.test.ts', 'a second instance on the same folder exits with 75']],
  F21: [['test/faults/gateway-storm.test.ts', 'F21: ']],
  R1: [['test/behaviours/execution-regressions.test.ts', 'R1: ']],
  R2: [['test/behaviours/execution-regressions.test.ts', 'R2: ']],
  R3: [['test/behaviours/execution-regressions.test.ts', 'R3: ']],
  R4: [['test/behaviours/execution-regressions.test.ts', 'R4: ']],
  R5: [['test/behaviours/execution-regressions.test.ts', 'R5: ']],
  R6: [
    ['test/behaviours/execution-regressions.test.ts', 'R6: '],
    ['test/behaviours/execution-regressions.test.ts', 'R6, R7: '],
  ],
  R7: [['test/behaviours/execution-regressions.test.ts', 'R6, R7: ']],
  R8: [['test/behaviours/execution-time.test.ts', 'R8, T25: ']],
  R9: [
    ['test/faults/serve-clock.test.ts', 'F10, R9: '],
    ['test/behaviours/execution-time.test.ts', 'R9: '],
  ],
  R10: [['test/behaviours/execution-time.test.ts', 'R10: ']],
  R11: [['test/behaviours/execution-regressions.test.ts', 'R11: ']],
  R12: [['test/behaviours/execution-regressions.test.ts', 'R12: ']],
  R13: [
    ['test/behaviours/execution-ring.test.ts', 'R13: '],
    ['src/evm/fold/contention.test.ts', 'handles 25,000 transactions'],
  ],
  R14: [['test/behaviours/execution-spec.test.ts', 'R14: ']],
  R15: [['test/behaviours/execution-regressions.test.ts', 'R15: ']],
  R16: [['src/evm/fold/lifecycle.test.ts', 'R16: ']],
  R17: [['test/behaviours/execution-ring.test.ts', 'R17: ']],
  R18: [['test/behaviours/execution-regressions.test.ts', 'R18: ']],
}

const ROWS = [
  ...threatRows(),
  ...Array.from({ length: 21 }, (_, at) => `F${at + 1}`),
  ...Array.from({ length: 18 }, (_, at) => `R${at + 1}`),
]

test('every threat, fault and regression has a test that exists', () => {
  assert.deepEqual(
    ROWS.filter((row) => (HELD[row]?.length ?? 0) === 0),
    [],
  )
  const missing: string[] = []
  for (const [row, positions] of Object.entries(HELD)) {
    for (const [file, name] of positions) {
      if (!testNamesOf(file).some((known) => known.startsWith(name))) missing.push(`${row}: ${file}: ${name}`)
    }
  }
  assert.deepEqual(missing, [])
})

test('docs/threats.md has one row for each number, without a gap', () => {
  const numbers = threatRows().map((row) => Number(row.slice(1)))
  assert.deepEqual(
    numbers.toSorted((one, other) => one - other),
    Array.from({ length: 43 }, (_, at) => at + 1),
  )
})

test('a missing test is found', () => {
  assert.ok(!testNamesOf('test/threats/quota.test.ts').some((name) => name.startsWith('T99: ')))
  assert.deepEqual(testNamesOf('test/threats/no-such-file.test.ts'), [])
})

/** The rows of the table in docs/threats.md. */
function threatRows(): string[] {
  const page = readFileSync(join(ROOT, 'docs/threats.md'), 'utf8')
  return [...page.matchAll(/^\| (T\d+) \|/gm)].map(([, row]) => row as string)
}

function testNamesOf(file: string): string[] {
  try {
    return testNames(readFileSync(join(ROOT, file), 'utf8'))
  } catch {
    return []
  }
}
