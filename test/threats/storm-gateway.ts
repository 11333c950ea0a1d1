import { parseAccessOptions } from '../../src/access/options.ts'
import { startGateway } from '../support/gateway/start.ts'
import { STORM_PLANS } from './storm-plan.ts'

/** One of several gateway processes on one store and one Redis. Prints where it listens, and ends cleanly at SIGTERM. */
const [, , folder = '', redisUrl = '', nodeText = ''] = process.argv
const node = JSON.parse(nodeText) as { name: string; rpc: string; ws: string; grpc: string }
const { quota } = parseAccessOptions({ quota: { shared: { url: redisUrl, processesAssumed: 2 } } })
const gateway = await startGateway([node], STORM_PLANS, { folder, quota })
process.once('SIGTERM', () => {
  void gateway[Symbol.asyncDispose]().then(() => process.disconnect?.())
})
process.stdout.write(`${JSON.stringify({ url: gateway.url, ws: gateway.ws, grpc: gateway.grpc })}\n`)
