import { once } from 'node:events'
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'

export type TestHttpServer = AsyncDisposable & {
  /** Without a slash at the end. */
  readonly url: string
}

/** An HTTP server on a loopback port that responds as a test says. Closing it ends its connections. */
export async function startHttpServer(respond: RequestListener): Promise<TestHttpServer> {
  const server = createServer(respond).listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}
