/** The gateway's address and the token, from the handover card. The default is the gateway of `npm start` on this machine. */
export const RPC_URL = process.env.SLUICE_RPC ?? 'http://127.0.0.1:8899'
export const WS_URL = process.env.SLUICE_WS ?? 'ws://127.0.0.1:8900'
export const GRPC_URL = process.env.SLUICE_GRPC ?? 'http://127.0.0.1:10010'
export const TOKEN = process.env.SLUICE_TOKEN ?? ''

if (TOKEN === '') throw new Error('put the token of your handover card into SLUICE_TOKEN')
