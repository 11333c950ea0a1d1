import { EXECUTION_ROUTES, EXECUTION_RPC_METHODS } from '../../src/contract/execution-routes.ts'
import { BLOCKED_BY_DEFAULT, METRIC_KINDS, RAW_EVENTS, STREAM_PATHS } from '../../src/contract/stream-events.ts'
import { table } from './markdown.ts'

const code = (words: readonly string[]): string => words.map((word) => `\`${word}\``).join(', ')

/** The execution service, from its route tables. */
export function executionSection(): string[] {
  return [
    '## Execution service (8443)',
    'Open unless `execution.auth = "token"`. Then the marked paths require a token of any subscription in `x-token` or `Authorization: Bearer`, and the stream also accepts a `?ticket=`. `POST /v1/ws-ticket` with the token in a header returns a ticket: `{"ticket","expires_at"}`, valid for 60 s. The page asks for a token and uses a ticket.',
    table(
      ['method', 'path', 'token', 'response'],
      EXECUTION_ROUTES.map(({ method, path, open, brief }) => [method, path, open ? 'no' : 'if required', brief]),
    ),
    `Errors are \`{"error":"…"}\` with a status: 404 for a block that is not tracked, 503 if there is no data yet. \`/health\` returns 503 when no event arrived for 30 s; 5 s later the service restarts. JSON-RPC reads the blocks in memory: ${code(EXECUTION_RPC_METHODS)}. Others are -32601 \`Method not found\`; logs of blocks that are not in memory are an error with the available range, never an empty list.`,
    `**Stream.** WebSocket on ${code(STREAM_PATHS)}. Frames are \`{"seq":n,"<kind>":payload}\`. By default a client gets Hello, a snapshot and the four kinds of the specification; \`?subscribe=TPS,Lifecycle\` or a message \`{"subscribe":["TPS"]}\` selects others, \`{"subscribe":{"events":[…],"filters":[…],"correlate":true}}\` with filters. Kinds: ${code(METRIC_KINDS)}. Events of the ring: ${code(RAW_EVENTS.filter((name) => !(BLOCKED_BY_DEFAULT as readonly string[]).includes(name)))}; others are not offered by default. \`min_stage\` is \`Proposed\`: events are sent as they happen, none is held back or dropped for its stage; follow Lifecycle to learn when a block gets further.`,
    '**Resume.** `?resume_from=N` with the same subscription returns every frame after N that an uninterrupted client would have received, byte for byte, then live frames. A cursor outside the window gets the Warning `resume_out_of_window` and a snapshot. `seq` grows across restarts. Frames dropped for a slow client are reported by `backpressure` with their range before the next frame; 10,000 of them close the connection with 1008. Losses in the ring are reported by `ring_gap` and `ring_restart`. A restart of the service closes with 1012: reconnect with the cursor.',
    '**Reading the figures.** The time of a transaction includes waiting for the one before it, so `parallel_efficiency_pct` is in the high nineties even with heavy conflicts; `ConflictData` shows how far a block could run in parallel. Counts of TopAccesses come from the Space-Saving algorithm with 1,000 counters: never too low, and too high by at most the smallest count listed. A source that is an EVM node has no durations: they are 0, and Hello has `"timings":false`.',
  ]
}
