import { rmSync } from 'node:fs'
import koffi from 'koffi'
import { ERRNO, LINUX, loadUdpCalls } from '../udp/system-calls.ts'

/** For tests: the other end of NOTIFY_SOCKET. */
export async function listenAsServiceManager(path: string): Promise<Disposable & { all(): string[] }> {
  const calls = await loadUdpCalls()
  const recv = koffi.load(null).func('long recv(int, _Out_ void *, size_t, int)')
  const socket = calls.socket(1)
  const address = Buffer.concat([Buffer.from([1, 0]), Buffer.from(path.replace(/^@/, '\0'))])
  const result = calls.bind(socket, address)
  if (result < 0) throw new Error(`cannot bind ${path}: ${-result}`)
  const heard: string[] = []
  return {
    /** All messages so far. */
    all() {
      const buffer = Buffer.alloc(256)
      for (;;) {
        const bytes = Number(recv(socket, buffer, buffer.length, LINUX.MSG_DONTWAIT))
        if (bytes < 0 && koffi.errno() !== ERRNO.EAGAIN) throw new Error(`recv: ${koffi.errno()}`)
        if (bytes < 0) return heard
        heard.push(buffer.toString('utf8', 0, bytes))
      }
    },
    [Symbol.dispose]() {
      calls.close(socket)
      if (!path.startsWith('@')) rmSync(path, { force: true })
    },
  }
}
