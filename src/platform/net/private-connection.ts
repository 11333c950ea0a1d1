import { TLSSocket } from 'node:tls'
import { isLoopbackAddress } from './connection-caps.ts'

/** Whether nobody between the client and this process can read the bytes of a connection: it is encrypted here, or does not leave the machine. */
export function isPrivateConnection(socket: { readonly remoteAddress?: string | undefined }): boolean {
  return socket instanceof TLSSocket || isLoopbackAddress(socket.remoteAddress ?? '')
}
