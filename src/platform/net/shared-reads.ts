import { Socket } from 'node:net'

/** The runtime's handle behind a socket; passed on without access to it. */
type Handled = { _handle?: object | null }

/**
 * The same connection as a socket that reads into a shared buffer instead of allocating for each read. It emits `data` as usual, but the bytes are
 * valid only until the listener returns. The runtime offers this (`onread`) for sockets that connect and not for accepted ones, so the handle of the
 * accepted socket moves to a new one.
 */
export function withSharedReads(
  accepted: Socket,
  buffer: Buffer,
  options: { readonly allowHalfOpen: boolean },
): Socket {
  const from = accepted as Handled
  const handle = from._handle
  if (handle === undefined || handle === null) return accepted
  from._handle = null
  accepted.destroy()
  const onread = {
    buffer,
    callback(bytes: number) {
      socket.emit('data', buffer.subarray(0, bytes))
      return true
    },
  }
  const socket: Socket = new Socket({ ...options, handle, onread } as ConstructorParameters<typeof Socket>[0])
  return socket
}
