import { connect } from 'node:http2'
import { frameMessage } from '../../src/platform/grpc/framing.ts'
import { SubscribeDeshredRequestSchema } from '../../src/solana/gen/geyser_pb.ts'
import { encodeMessage } from '../../src/solana/geyser/protobuf.ts'

/**
 * Subscribers of decoded shreds as a process. Arguments: port, token, and for each subscriber its accounts separated by commas, or `all`. Prints the
 * bytes that each received when its standard input ends.
 */
const [port = '0', token = '', ...filters] = process.argv.slice(2)
const WINDOW_BYTES = 16 * 1024 * 1024
const received = filters.map(() => 0)
for (const [at, filter] of filters.entries()) {
  const session = connect(`http://127.0.0.1:${port}`, { settings: { initialWindowSize: WINDOW_BYTES } })
  session.on('connect', () => session.setLocalWindowSize(WINDOW_BYTES))
  session.on('error', () => {})
  const stream = session.request({
    ':method': 'POST',
    ':path': '/geyser.Geyser/SubscribeDeshred',
    'content-type': 'application/grpc',
    te: 'trailers',
    'x-token': token,
  })
  stream.on('response', (headers) => {
    if (headers['grpc-status'] !== undefined) throw new Error(`refused: ${String(headers['grpc-message'])}`)
  })
  stream.on('error', () => {})
  stream.on('data', (chunk: Buffer) => {
    received[at] = (received[at] as number) + chunk.length
  })
  const accountInclude = filter === 'all' ? [] : filter.split(',')
  stream.write(
    frameMessage(encodeMessage(SubscribeDeshredRequestSchema, { deshredTransactions: { f: { accountInclude } } })),
  )
}
process.stdout.write('"open"\n')
process.stdin.on('end', () => process.stdout.write(`${JSON.stringify(received)}\n`, () => process.exit(0))).resume()
