/**
 * Follows the execution stream with the client of this project and prints its events; after a lost connection it resumes.
 *
 *     node examples/execution-stream.ts http://127.0.0.1:8443            until Ctrl+C
 *     node examples/execution-stream.ts http://127.0.0.1:8443 20         twenty blocks
 *
 * Outside of this checkout the same client is one file without dependencies, served by every execution service:
 * `curl -sO http://127.0.0.1:8443/page/execution-stream.js`. It runs in Node 22 or newer and in browsers.
 */
import { openExecutionStream } from '../src/dashboard/client/stream-client.ts'

const [, , url = 'http://127.0.0.1:8443', blocksText = 'Infinity'] = process.argv
const blocksMax = Number(blocksText)
let blocks = 0

for await (const event of openExecutionStream({ url, subscribe: ['TPS', 'ContentionData', 'Lifecycle'] })) {
  switch (event.kind) {
    case 'ContentionData': {
      const { block_number, total_txn_count, parallel_efficiency_pct } = event.data
      console.log(
        `block ${block_number}  ${total_txn_count} transactions  ${parallel_efficiency_pct.toFixed(1)} % efficient`,
      )
      blocks += 1
      break
    }
    case 'Lifecycle':
      if (event.data.to_stage === 'Finalized')
        console.log(`block ${event.data.block_number}  final after ${event.data.block_age_ms} ms`)
      break
    case 'gap':
      // Events are lost, with the reason: a program that keeps totals would start over here.
      console.error(`missing: ${event.reason}`, event.warning ?? '')
      break
    case 'connection':
      console.error(event.state === 'open' ? `connected${event.resumed ? ', resumed' : ''}` : event.state)
      break
    default:
  }
  if (blocks >= blocksMax) break
}
