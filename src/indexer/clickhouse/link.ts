import type { Clock } from '../../core/clock.ts'
import { type HttpClient, readReplyText } from '../../platform/http/client/client.ts'
import { systemClock } from '../../platform/process/clock.ts'
import { watchServer } from './alive.ts'

/** An account on the operator's server, as statements of our own use it. */
export type ClickHouseAccount = {
  readonly url: string
  readonly user: string
  readonly password: string
}

/** The server's own words about a statement that it did not take. */
export class ClickHouseRefusal extends Error {
  override readonly name = 'ClickHouseRefusal'
  readonly code: number
  constructor(text: string) {
    super(text.slice(0, 500).trimEnd())
    this.code = Number(/Code: (\d+)/.exec(text)?.[1] ?? 0)
  }
}

export type ClickHouseLink = {
  /** Runs a statement to its end and gives its answer. Rejects with ClickHouseRefusal, or with HttpCallFailed when there is no answer. */
  run(statement: string, settings?: Readonly<Record<string, string>>): Promise<string>
  /** One INSERT, acknowledged by the server when it resolves. */
  insert(statement: string, lines: string, settings?: Readonly<Record<string, string>>): Promise<void>
  /** Rows of a SELECT, each an array of its values; large integers as text. */
  rows(select: string): Promise<unknown[][]>
}

const RESPONSE_BYTES_MAX = 16 * 1024 * 1024
/** Longer than any statement of our own should take: a server that answers its ping and nothing else must not hold ingest forever. */
const STATEMENT_MS = 120_000

/** Statements of our own, over HTTP. The password goes in a header: addresses end up in logs. */
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
    // An old server tells a late error at the end of a good answer.
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
