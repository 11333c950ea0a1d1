import { Socket } from 'node:net'

/** What the runtime keeps behind a socket; taken over whole and never looked into. */
type Handled = { _handle?: object | null }

/**
 * The same connection as a socket whose reads all land in one buffer, shared by as many as like, instead of each in memory of its own. It says
 * `data` as any other; but what it gives there is good only until the listener returns. The runtime offers this for the sockets it connects
 * (`onread`) and not for those it accepts, so the accepted one gives its handle to a new one and goes.
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
