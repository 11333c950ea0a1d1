import { once } from 'node:events'
import { connect, type Socket } from 'node:net'

/** A cheap HTTP client: persistent connections with one request at a time on each. */
export type SenderLoad = Disposable & {
  /** Waits for a free connection. `fields` are additional header lines, each with its CRLF. */
  post(body: string, fields?: string): Promise<LoadResponse>
}

export type LoadResponse = { readonly status: number; readonly head: string; readonly body: string }

/** Opens connections on demand and drops those that the server closes. */
export function openSenderLoad(url: string, connectionsMax: number, localAddress?: string): SenderLoad {
  const { hostname, port } = new URL(url)
  const to = { port: Number(port), host: hostname, ...(localAddress === undefined ? {} : { localAddress }) }
  const all = new Set<Socket>()
  const idle: Socket[] = []
  const waiting: ((socket: Socket) => void)[] = []

  async function open(): Promise<Socket> {
    const socket = connect(to).setNoDelay(true)
    all.add(socket)
    socket.on('close', () => {
      all.delete(socket)
      const at = idle.indexOf(socket)
      if (at !== -1) idle.splice(at, 1)
    })
    await once(socket, 'connect')
    return socket
  }

  async function openFor(next: (socket: Socket) => void): Promise<void> {
    next(await open())
  }

  function take(): Socket | Promise<Socket> {
    const socket = idle.pop()
    if (socket !== undefined) return socket
    return all.size < connectionsMax ? open() : new Promise((resolve) => waiting.push(resolve))
  }

  function free(socket: Socket): void {
    const next = waiting.shift()
    if (socket.writable) {
      if (next === undefined) idle.push(socket)
      else next(socket)
    } else if (next !== undefined) void openFor(next)
  }

  return {
    async post(body, fields = '') {
      const socket = await take()
      const response = readResponse(socket)
      socket.write(
        `POST / HTTP/1.1\r\nhost: ${hostname}\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n${fields}\r\n${body}`,
      )
      const whole = await response
      free(socket)
      return whole
    },
    [Symbol.dispose]() {
      for (const socket of all) socket.destroy()
    },
  }
}

/** The body of a sendTransaction call. */
export function sendTransactionBody(wire: Uint8Array): string {
  const text = Buffer.from(wire).toString('base64')
  return `{"jsonrpc":"2.0","id":1,"method":"sendTransaction","params":["${text}",{"encoding":"base64","skipPreflight":true,"maxRetries":0}]}`
}

/** A complete response: with a content length, or chunked. */
function readResponse(socket: Socket): Promise<LoadResponse> {
  return new Promise((resolve, reject) => {
    let text = ''
    const onData = (chunk: Buffer) => {
      text += chunk.toString('latin1')
      const end = text.indexOf('\r\n\r\n')
      if (end === -1) return
      const head = text.slice(0, end)
      const length = /\r\ncontent-length: (\d+)/i.exec(head)?.[1]
      const isComplete = length === undefined ? text.endsWith('0\r\n\r\n') : text.length >= end + 4 + Number(length)
      if (!isComplete) return
      finish()
      resolve({ status: Number(head.slice(9, 12)), head, body: text.slice(end + 4) })
    }
    const onClose = () => {
      finish()
      reject(new Error('the connection was closed'))
    }
    const finish = () => socket.off('data', onData).off('close', onClose)
    socket.on('data', onData).on('close', onClose)
  })
}
