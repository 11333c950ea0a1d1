import { once } from 'node:events'
import { connect, type Socket } from 'node:net'

/** A client that costs little beside the server under test: kept connections, one request at a time on each. */
export type SenderLoad = Disposable & {
  /** Waits for a free connection. `fields` are more header lines, each with its end. */
  post(body: string, fields?: string): Promise<LoadAnswer>
}

export type LoadAnswer = { readonly status: number; readonly head: string; readonly body: string }

export async function openSenderLoad(url: string, connections: number, localAddress?: string): Promise<SenderLoad> {
  const { hostname, port } = new URL(url)
  const idle: Socket[] = []
  const waiting: ((socket: Socket) => void)[] = []
  const all: Socket[] = []
  for (let n = 0; n < connections; n++) {
    const from = localAddress === undefined ? {} : { localAddress }
    const socket = connect({ port: Number(port), host: hostname, ...from }).setNoDelay(true)
    await once(socket, 'connect')
    all.push(socket)
    idle.push(socket)
  }
  const take = () => {
    const socket = idle.pop()
    return socket === undefined ? new Promise<Socket>((resolve) => waiting.push(resolve)) : socket
  }
  const free = (socket: Socket) => {
    const next = waiting.shift()
    if (next === undefined) idle.push(socket)
    else next(socket)
  }
  return {
    async post(body, fields = '') {
      const socket = await take()
      const answer = readAnswer(socket)
      socket.write(
        `POST / HTTP/1.1\r\nhost: ${hostname}\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n${fields}\r\n${body}`,
      )
      const whole = await answer
      free(socket)
      return whole
    },
    [Symbol.dispose]() {
      for (const socket of all) socket.destroy()
    },
  }
}

/** The body of sendTransaction as clients write it. */
export function sendTransactionBody(wire: Uint8Array): string {
  const text = Buffer.from(wire).toString('base64')
  return `{"jsonrpc":"2.0","id":1,"method":"sendTransaction","params":["${text}",{"encoding":"base64","skipPreflight":true,"maxRetries":0}]}`
}

/** An answer with a length, or in chunks of which the last is empty. */
function readAnswer(socket: Socket): Promise<LoadAnswer> {
  return new Promise((resolve, reject) => {
    let text = ''
    const onData = (chunk: Buffer) => {
      text += chunk.toString('latin1')
      const end = text.indexOf('\r\n\r\n')
      if (end === -1) return
      const head = text.slice(0, end)
      const length = /\r\ncontent-length: (\d+)/i.exec(head)?.[1]
      const isWhole = length === undefined ? text.endsWith('0\r\n\r\n') : text.length >= end + 4 + Number(length)
      if (!isWhole) return
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
