import { connect } from 'node:http2'
import { createConnection } from 'node:net'
import { gzipSync } from 'node:zlib'
import { create, toBinary } from '@bufbuild/protobuf'
import { SubscribeRequestSchema } from '../../src/solana/gen/geyser_pb.ts'
import { nextAddress, type WorkCase } from './work-case.ts'

const GEYSER = '/geyser.Geyser/'
const UNARY = ['Ping', 'GetLatestBlockhash', 'GetBlockHeight', 'GetSlot', 'IsBlockhashValid', 'GetVersion']
const PATHS = [...UNARY, 'SubscribeReplayInfo', 'Subscribe', 'SubscribeDeshred', 'NoSuchMethod'].map(
  (name) => `${GEYSER}${name}`,
)
const HEALTH = ['/grpc.health.v1.Health/Check', '/grpc.health.v1.Health/Watch']
const MIB = 1024 * 1024
/** How long a stream is left open: its first message is handled by then. */
const STREAM_MS = 150

/** Message bodies that cost the most to inflate or to decode. */
function bodies(): Readonly<Record<string, { readonly bytes: Buffer; readonly isGzip: boolean }>> {
  const plain = (bytes: Buffer) => ({ bytes, isGzip: false })
  const gzip = (bytes: Buffer) => ({ bytes: gzipSync(bytes), isGzip: true })
  // Field 1000 as a varint of one byte.
  const unknownFields = Buffer.alloc(4 * MIB - 8, Buffer.from([0xc0, 0x3e, 0x01]))
  const emptyMessages = Buffer.alloc(4 * MIB - 8, Buffer.from([0x0a, 0x00]))
  const groups = Buffer.concat([Buffer.alloc(MIB, 0x0b), Buffer.alloc(MIB, 0x0c)])
  return {
    'unknown fields': plain(unknownFields),
    'unknown fields, compressed': gzip(unknownFields),
    'empty messages, compressed': gzip(emptyMessages),
    'nested groups, compressed': gzip(groups),
    'zeros, compressed': gzip(Buffer.alloc(4 * MIB - 8)),
    'one long text': plain(Buffer.concat([Buffer.from([0x0a, 0xf0, 0xff, 0xff, 0x01]), Buffer.alloc(4 * MIB - 16)])),
    'too many bytes': plain(Buffer.alloc(6 * MIB)),
  }
}

/** gRPC: every method with every body, with a token and without, and the largest subscriptions. */
export function grpcCases(): WorkCase[] {
  const worst = Object.entries(bodies())
  return [
    ...[...PATHS, ...HEALTH].flatMap((path) =>
      worst.map(([name, body]) => ({
        name: `grpc ${path.split('/').at(-1)} with ${name}`,
        run: ({ grpc, token }: { grpc: string; token: string }) => call(grpc, path, token, body),
      })),
    ),
    ...worst.map(([name, body]) => ({
      name: `grpc Subscribe without a token, with ${name}`,
      run: ({ grpc }: { grpc: string }) => call(grpc, `${GEYSER}Subscribe`, undefined, body),
    })),
    ...Object.entries(subscriptions()).map(([name, bytes]) => ({
      name: `grpc Subscribe to ${name}`,
      run: ({ grpc, token }: { grpc: string; token: string }) =>
        call(grpc, `${GEYSER}Subscribe`, token, { bytes, isGzip: false }),
    })),
  ]
}

function subscriptions(): Readonly<Record<string, Buffer>> {
  const account = 'So11111111111111111111111111111111111111112'
  const many = (count: number) => Array.from({ length: count }, (_, at) => `${account.slice(0, 36)}${at}`.slice(0, 44))
  const make = (init: Parameters<typeof create<typeof SubscribeRequestSchema>>[1]) =>
    Buffer.from(toBinary(SubscribeRequestSchema, create(SubscribeRequestSchema, init)))
  return {
    'many accounts': make({ accounts: { a: { account: many(50_000) } } }),
    'many owners': make({ accounts: { a: { owner: many(50_000) } } }),
    'many filters': make({ slots: Object.fromEntries(Array.from({ length: 50_000 }, (_, at) => [`f${at}`, {}])) }),
    'many transactions': make({
      transactions: { a: { accountInclude: many(30_000), accountExclude: many(30_000), accountRequired: many(100) } },
    }),
    'many slices': make({
      accountsDataSlice: Array.from({ length: 100_000 }, (_, at) => ({ offset: BigInt(at), length: 1n })),
    }),
  }
}

/** One call on its own connection; ends with the stream, or after `STREAM_MS` where the stream stays open. */
function call(
  address: string,
  path: string,
  token: string | undefined,
  { bytes, isGzip }: { readonly bytes: Buffer; readonly isGzip: boolean },
): Promise<void> {
  const [host = '', port = ''] = address.split(':')
  return new Promise((resolve) => {
    const session = connect(`http://${address}`, {
      createConnection: () => createConnection({ host, port: Number(port), localAddress: nextAddress() }),
    })
    session.on('error', () => {})
    const stream = session.request({
      ':method': 'POST',
      ':path': path,
      'content-type': 'application/grpc',
      te: 'trailers',
      ...(isGzip ? { 'grpc-encoding': 'gzip' } : {}),
      ...(token === undefined ? {} : { 'x-token': token }),
    })
    const timer = setTimeout(
      () => session.destroy(),
      path.includes('Subscribe') || path.endsWith('Watch') ? STREAM_MS : 10_000,
    )
    stream.on('error', () => {})
    stream.on('close', () => session.destroy())
    session.on('close', () => {
      clearTimeout(timer)
      resolve()
    })
    stream.resume()
    const frame = Buffer.alloc(5)
    frame.writeUInt8(isGzip ? 1 : 0)
    frame.writeUInt32BE(bytes.length, 1)
    stream.end(Buffer.concat([frame, bytes]))
  })
}
