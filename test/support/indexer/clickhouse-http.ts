import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'

/** The part of the HTTP interface that the writer uses, over an engine without one: settings in the URL become part of the statement. */
export async function startHttpOver(
  run: (statement: string) => Promise<string>,
): Promise<AsyncDisposable & { url: string }> {
  const respond = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    if (request.url === '/ping') return void response.end('Ok.\n')
    const fields = new URL(request.url ?? '/', 'http://engine').searchParams
    const body = Buffer.concat(await request.toArray()).toString('utf8')
    const head = fields.get('query') ?? body
    const settings = [...fields].filter(([name]) => name !== 'query' && name !== 'query_id')
    const words = settings.map(([name, value]) => `${name} = '${value}'`).join(', ')
    const [before_, format] = head.split(/ (?=FORMAT \w+$)/) as [string, string | undefined]
    const statement = `${before_}${words === '' ? '' : ` SETTINGS ${words}`} ${format ?? ''}`
    try {
      response.end(await run(fields.has('query') ? `${statement}\n${body}` : statement))
    } catch (error) {
      response.writeHead(500).end(`Code: 1. ${String(error)}`)
    }
  }
  const server = createServer((request, response) => void respond(request, response)).listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as { port: number }).port}`,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      server.close()
    },
  }
}
