import type { Clock } from '../../core/clock.ts'
import { type HttpClient, readReplyText } from '../../platform/http/client/client.ts'
import { systemClock } from '../../platform/process/clock.ts'
import { watchServer } from './liveness.ts'

/** An account on the operator's server for the gateway's own statements. */
export type ClickHouseAccount = {
  readonly url: string
  readonly user: string
  readonly password: string
}

/** The server's error message about a statement that it refused. */
export class ClickHouseRefusal extends Error {
  override readonly name = 'ClickHouseRefusal'
  readonly code: number
  constructor(text: string) {
    super(text.slice(0, 500).trimEnd())
    this.code = Number(/Code: (\d+)/.exec(text)?.[1] ?? 0)
  }
}

export type ClickHouseLink = {
  /** Resolves with the complete response. Rejects with ClickHouseRefusal, or with HttpCallFailed when there is no response. */
  run(statement: string, settings?: Readonly<Record<string, string>>): Promise<string>
  /** Resolves when the server has acknowledged the INSERT. */
  insert(statement: string, lines: string, settings?: Readonly<Record<string, string>>): Promise<void>
  /** Rows of a SELECT, each an array of its values; 64-bit integers as strings. */
  rows(select: string): Promise<unknown[][]>
}

const RESPONSE_BYTES_MAX = 16 * 1024 * 1024
/** Longer than any of these statements takes: a server that responds to pings and nothing else must not block ingest for ever. */
const STATEMENT_MS = 120_000

/** Runs the gateway's own statements over HTTP. The password is sent in a header, because URLs end up in logs. */
export function createClickHouseLink(
  client: HttpClient,
  { user, password }: Omit<ClickHouseAccount, 'url'>,
  clock: Clock = systemClock,
): ClickHouseLink {
  const authorization = `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`

  async function send(target: string, body: string): Promise<string> {
    using watch = watchServer(client, clock)
    const reply = await client.send({
      method: 'POST',
      target,
      headers: { authorization },
      body: Buffer.from(body),
      signal: AbortSignal.any([AbortSignal.timeout(STATEMENT_MS), watch.signal]),
    })
    const text = await readReplyText(reply, RESPONSE_BYTES_MAX)
    // An old server writes a late error at the end of a response with status 200.
    if (
      reply.status !== 200 ||
      reply.headers['x-clickhouse-exception-code'] !== undefined ||
      /^Code: \d+[.,]/m.test(text)
    )
      throw new ClickHouseRefusal(text)
    return text
  }

  return {
    run: (statement, settings = {}) => send(`/?${new URLSearchParams(settings).toString()}`, statement),
    async insert(statement, lines, settings = {}) {
      await send(`/?${new URLSearchParams({ query: statement, ...settings }).toString()}`, lines)
    },
    async rows(select) {
      const text = await send('/?output_format_json_quote_64bit_integers=1', `${select} FORMAT JSONCompact`)
      return (JSON.parse(text) as { data: unknown[][] }).data
    },
  }
}
