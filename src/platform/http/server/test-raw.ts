import { connect } from 'node:net'
import type { HttpServer } from './server.ts'

/** For tests: writes the bytes and returns everything received until the server closes. */
export function raw(server: HttpServer, ...parts: readonly (string | Buffer)[]): Promise<string> {
  return new Promise((resolve) => {
    const socket = connect(server.address.port, '127.0.0.1')
    let text = ''
    socket.on('data', (chunk) => {
      text += String(chunk)
    })
    socket.on('error', () => {})
    // A server that never closes fails the test instead of blocking it.
    socket.setTimeout(20_000, () => {
      text += ' NOT CLOSED'
      socket.destroy()
    })
    socket.on('close', () => resolve(text))
    for (const part of parts) socket.write(part)
  })
}
