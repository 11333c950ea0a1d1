import type { Connection } from '@solana/web3.js'

/** web3.js has no public API to close its WebSocket; left open, it keeps reconnecting. */
export function endSocket(connection: Connection): void {
  type Inner = { _rpcWebSocket: { setAutoReconnect(on: boolean): void; close(): void } }
  const socket = (connection as unknown as Inner)._rpcWebSocket
  socket.setAutoReconnect(false)
  socket.close()
}
