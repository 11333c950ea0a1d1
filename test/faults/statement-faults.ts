import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'

/** An HTTP proxy before a ClickHouse server that cuts the connection at a chosen statement. */
export type StatementFaults = AsyncDisposable & {
  readonly url: string
  /**
   * Cuts the connection at the statement that matches, or at the nth one that does: before the server gets it, or when the server has executed it.
   * Replaces a cut that has not happened.
   */
  cutAt(statement: RegExp, when: 'before' | 'after', nth?: number): void
  /** Whether the cut has not happened yet; it is cancelled. */
  cancel(): boolean
}

type Cut = { readonly statement: RegExp; readonly when: 'before' | 'after'; left: number }

export async function startStatementFaults(target: string): Promise<StatementFaults> {
  let planned: Cut | undefined

  function takeCut(statement: string): Cut['when'] | undefined {
    if (planned === undefined || !planned.statement.test(statement) || --planned.left > 0) return undefined
    const { when } = planned
    planned = undefined
    return when
  }

  async function forward(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const body = Buffer.concat(await request.toArray())
    const statement = new URL(request.url ?? '/', target).searchParams.get('query') ?? body.toString('utf8')
    const cut = request.method === 'POST' ? takeCut(statement) : undefined
    if (cut === 'before') return void response.destroy()
    const { authorization = '' } = request.headers
    const method = request.method ?? 'GET'
    const reply = await fetch(new URL(request.url ?? '/', target), {
      method,
      headers: { authorization },
      ...(method === 'POST' ? { body } : {}),
    })
    const content = Buffer.from(await reply.arrayBuffer())
    if (cut === 'after') return void response.destroy()
    const code = reply.headers.get('x-clickhouse-exception-code')
    response.writeHead(reply.status, code === null ? {} : { 'x-clickhouse-exception-code': code }).end(content)
  }

  const server = createServer((request, response) => {
    forward(request, response).catch(() => response.destroy())
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as { port: number }).port}`,
    cutAt(statement, when, nth = 1) {
      planned = { statement, when, left: nth }
    },
    cancel() {
      const isPlanned = planned !== undefined
      planned = undefined
      return isPlanned
    },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      server.close()
    },
  }
}
