import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { readResponses } from './paced-load.ts'

/** Opens connections, makes some calls on each, and keeps them open. */
export async function holdConnections(options: {
  readonly port: number
  readonly token: string
  readonly body: string
  readonly connections: number
}): Promise<AsyncDisposable & { readonly open: number }> {
  const { port, token, body, connections } = options
  const request = `POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nx-token: ${token}\r\nContent-Length: ${body.length}\r\n\r\n${body}`
  const sockets: Socket[] = []
  for (let made = 0; made < connections; made++) {
    const socket = connect({ port, host: '127.0.0.1' })
    sockets.push(socket)
    await once(socket, 'connect')
    await new Promise<void>((resolve) => {
      let responded = 0
      readResponses(socket, () => {
        responded += 1
        if (responded === CALLS_EACH) resolve()
        else socket.write(request)
      })
      socket.write(request)
    })
  }
  return {
    open: sockets.filter((socket) => !socket.destroyed).length,
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy()
    },
  }
}

const CALLS_EACH = 10
