import { finish } from '../../core/work.ts'
import type { BlockStore } from './block-store.ts'
import { Blocks } from './blocks.ts'
import type { CallMeter } from './call-meter.ts'
import { createEthMethods, type EthMethod } from './eth-methods.ts'
import { type JsonRpcDeps, type RpcOutcome, respondToJsonRpc } from './json-rpc.ts'
import { RenderedBlocks } from './rendered-blocks.ts'
import { ResponseText } from './response-text.ts'

/** For tests: a meter that counts and refuses nothing. */
export function countingMeter(): CallMeter & { units: number } {
  const meter = {
    units: 0,
    take: (units: number) => void (meter.units += units),
    charge: (units: number) => void (meter.units += units),
  }
  return meter
}

export function testMethods(store: BlockStore): ReturnType<typeof createEthMethods> {
  const rendered = new RenderedBlocks({ bytesMax: 2 ** 24 })
  return createEthMethods({
    blocks: new Blocks(store),
    rendered,
    chainId: () => 1,
    clientVersion: 'x',
    logBlocksMax: 1000,
  })
}

/** The result of one method, run to its end. */
export function callMethod(method: EthMethod, params: readonly unknown[], meter = countingMeter()): unknown {
  const out = new ResponseText({ bytesMax: 2 ** 28, onBytes: () => {} })
  finish(method(params, { meter, out }))
  return JSON.parse(textOf(out))
}

/** The response to a body, as text. */
export function responseBody(
  body: Buffer,
  deps: JsonRpcDeps,
  { batchItemsMax = 100, meter = countingMeter() as CallMeter, bytesMax = 2 ** 28 } = {},
): RpcOutcome & { text: string } {
  const out = new ResponseText({ bytesMax, onBytes: () => {} })
  const outcome = finish(respondToJsonRpc({ body, meter, out }, { batchItemsMax }, deps))
  return { ...outcome, text: textOf(out) }
}

function textOf(out: ResponseText): string {
  return Buffer.concat([...out.take().chunks]).toString('utf8')
}
