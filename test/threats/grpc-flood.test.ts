import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import { connect as connectHttp2, constants, type Settings } from 'node:http2'
import { connect } from 'node:net'
import { after, before, describe, test } from 'node:test'
import { promisify } from 'node:util'
import { Client, credentials, status } from '@grpc/grpc-js'
import { frameMessage } from '../../src/platform/grpc/framing.ts'
import { serveUnary } from '../../src/platform/grpc/unary.ts'
import { until } from '../../src/platform/process/test-wait.ts'
import { type FakeNode, startFakeNode } from '../faults/fake-node.ts'
import { temporaryFolder } from '../support/cli/run.ts'
import { PING, SUBSCRIBE, tokenMetadata, unary } from '../support/gateway/grpc.ts'
import { type ServedGateway, startServedGateway } from '../support/gateway/served.ts'
import { isFull } from '../support/process/property.ts'

const HEADERS = 1
const SETTINGS = 4
const PING_FRAME = 6
const GOAWAY = 7
const CONTINUATION = 9
const END_STREAM = 1
const RST_STREAM = 3

/** One HTTP/2 frame (RFC 9113 section 4.1). */
function frame(type: number, flags: number, stream: number, payload: Uint8Array): Buffer {
  const head = Buffer.alloc(9)
  head.writeUIntBE(payload.length, 0, 3)
  head[3] = type
  head[4] = flags
  head.writeUInt32BE(stream, 5)
  return Buffer.concat([head, payload])
}

const PREFACE = Buffer.concat([Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'), frame(SETTINGS, 0, 0, Buffer.alloc(0))])
/** Literal field without indexing (RFC 7541 section 6.2.2): `a: bbbb…`. */
const field = (bytes: number) => Buffer.concat([Buffer.of(0, 1, 0x61, bytes), Buffer.alloc(bytes, 0x62)])

describe('T12: floods on the gRPC server', () => {
  let node: FakeNode
  let gateway: ServedGateway
  let client: Client
  before(async () => {
    node = await startFakeNode()
    node.onGrpcCall = (call) => serveUnary(call, (message) => ({ ok: true, message }))
    gateway = await startServedGateway([{ name: 'a', grpc: node.grpc }])
    client = new Client(gateway.grpc, credentials.createInsecure())
  })
  after(async () => {
    client.close()
    await gateway[Symbol.asyncDispose]()
    await node[Symbol.asyncDispose]()
  })

  const rssBytes = () =>
    Number(/^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${gateway.running.child.pid}/status`, 'utf8'))?.[1]) * 1024

  async function othersAreServed(): Promise<void> {
    const { error } = await unary(client, PING, Buffer.alloc(0), tokenMetadata(gateway.token))
    assert.equal(error, null)
  }

  /** Sends frames until the server ends the connection or all are sent; returns the outcome and the GOAWAY code. */
  async function flood(
    next: (at: number) => Buffer,
    framesMax: number,
  ): Promise<{ isEnded: boolean; goaway: number | undefined }> {
    const [host, port] = gateway.grpc.split(':')
    const socket = connect(Number(port), host)
    let isEnded = false
    let received = Buffer.alloc(0)
    socket.on('error', () => {})
    socket.on('close', () => (isEnded = true))
    socket.on('data', (chunk: Buffer) => (received = Buffer.concat([received, chunk])))
    socket.write(PREFACE)
    for (let at = 0; at < framesMax && !isEnded; at++) {
      if (!socket.write(next(at))) await new Promise((resolve) => socket.once('drain', resolve).once('close', resolve))
      if (at % 100 === 0) await new Promise(setImmediate)
    }
    await until('the connection is ended, or others are served', async () => isEnded || (await othersAreServed(), true))
    socket.destroy()
    return { isEnded, goaway: goawayCode(received) }
  }

  function goawayCode(bytes: Buffer): number | undefined {
    for (let at = 0; at + 9 <= bytes.length; at += 9 + bytes.readUIntBE(at, 3)) {
      if (bytes[at + 3] === GOAWAY && at + 17 <= bytes.length) return bytes.readUInt32BE(at + 13)
    }
    return undefined
  }

  test('T12: ends a connection that floods CONTINUATION frames', async () => {
    const before = rssBytes()
    const { isEnded } = await flood(
      (at) =>
        at === 0
          ? frame(HEADERS, 0, 1, field(100))
          : frame(CONTINUATION, 0, 1, Buffer.concat(Array(100).fill(field(100)))),
      20_000,
    )
    assert.ok(isEnded, 'the connection was left open')
    await othersAreServed()
    assert.ok(rssBytes() - before < 64 * 2 ** 20, 'memory is bounded')
  })

  test('T12: ends a connection that floods opened and reset streams', async () => {
    const before = rssBytes()
    const { isEnded } = await flood((at) => {
      const stream = 1 + 2 * at
      return Buffer.concat([
        frame(HEADERS, 4 | END_STREAM, stream, field(10)),
        frame(RST_STREAM, 0, stream, Buffer.of(0, 0, 0, 8)),
      ])
    }, 20_000)
    assert.ok(isEnded, 'the connection was left open')
    await othersAreServed()
    assert.ok(rssBytes() - before < 64 * 2 ** 20, 'memory is bounded')
  })

  test('T12: ends a connection that floods SETTINGS and PING frames', async () => {
    const before = rssBytes()
    for (const kind of [frame(SETTINGS, 0, 0, Buffer.alloc(0)), frame(PING_FRAME, 0, 0, Buffer.alloc(8))]) {
      const { isEnded, goaway } = await flood(() => kind, 50_000)
      assert.ok(isEnded || goaway !== undefined, 'the flood was not refused')
    }
    await othersAreServed()
    assert.ok(rssBytes() - before < 64 * 2 ** 20, 'memory is bounded')
  })

  test('T12: a client gets the limits in SETTINGS, and is refused beyond them', async () => {
    const session = connectHttp2(`http://${gateway.grpc}`)
    try {
      const [settings] = (await once(session, 'remoteSettings')) as [Settings]
      assert.deepEqual([settings.maxConcurrentStreams, settings.maxHeaderListSize], [100, 16 * 1024])
      const large = tokenMetadata(gateway.token)
      large.set('x-note', 'x'.repeat(20_000))
      const { error } = await unary(client, PING, Buffer.alloc(0), large)
      assert.ok(error !== null && [status.RESOURCE_EXHAUSTED, status.INTERNAL].includes(error.code), String(error))
    } finally {
      session.destroy()
    }
    await othersAreServed()
  })

  test('T12: delays a subscription that opens calls only to cancel them, and no others', async () => {
    const made = await gateway.sluice('sub', 'create', 'rude', '--customer', 'acme', '--print-token', '--json')
    assert.equal(made.code, 0, made.stderr)
    const { token } = JSON.parse(made.stdout) as { token: string }
    await until('the gateway knows the token', async () => {
      const { error } = await unary(client, PING, Buffer.alloc(0), tokenMetadata(token))
      return error === null
    })
    const session = connectHttp2(`http://${gateway.grpc}`)
    session.on('error', () => {})
    const opened = node.onGrpcCall
    const open = () =>
      session
        .request({
          ':method': 'POST',
          ':path': SUBSCRIBE,
          'content-type': 'application/grpc',
          te: 'trailers',
          'x-token': token,
        })
        .on('error', () => {})
    try {
      let atNode = 0
      node.onGrpcCall = () => void (atNode += 1)
      let refused: unknown
      // Twice as many as are allowed, and no more than a connection may reset.
      for (let made = 0; made < 200 && refused === undefined; made++) {
        const before = atNode
        const call = open()
        call.on('response', (headers) => (refused = headers['grpc-status']))
        await until('the node has it, or it is refused', () => atNode > before || refused !== undefined)
        call.close(constants.NGHTTP2_CANCEL)
        await once(call, 'close')
      }
      assert.equal(refused, String(status.RESOURCE_EXHAUSTED))
      assert.ok(atNode <= 110, `${atNode} calls came to the node`)
    } finally {
      node.onGrpcCall = opened
      session.destroy()
    }
    await othersAreServed()
  })

  test('T12: methods that are not served have a rate limit of the address, also over many connections', async () => {
    const statuses: (string | undefined)[] = []
    let ended = 0
    for (let connection = 0; connection < 40 && ended < 3; connection++) {
      const session = connectHttp2(`http://${gateway.grpc}`)
      session.on('error', () => {})
      session.on('goaway', () => (ended += 1))
      const calls = Array.from({ length: 90 }, () => unknownMethod(session))
      statuses.push(...(await Promise.all(calls)))
      session.destroy()
    }
    assert.equal(ended, 3, 'connections beyond the limit are ended')
    assert.ok(statuses.filter((code) => code === String(status.UNIMPLEMENTED)).length >= 1000)
    assert.ok(statuses.includes(String(status.RESOURCE_EXHAUSTED)))
    // What is not gRPC draws from the same limit.
    const session = connectHttp2(`http://${gateway.grpc}`)
    session.on('error', () => {})
    const goaway = once(session, 'goaway')
    for (let call = 0; call < 90; call++) void unknownMethod(session, 'text/plain')
    await goaway
    session.destroy()
    await othersAreServed()
  })

  /** The status of one call; undefined where the connection ended before it. */
  async function unknownMethod(
    session: ReturnType<typeof connectHttp2>,
    contentType = 'application/grpc',
  ): Promise<string | undefined> {
    const headers = { ':method': 'POST', ':path': '/a/b', 'content-type': contentType, te: 'trailers' }
    const call = session.request(headers, { endStream: true })
    let code: string | undefined
    call.on('error', () => {})
    call.on('response', (fields) => (code ??= fields['grpc-status'] as string | undefined))
    call.on('trailers', (fields) => (code ??= fields['grpc-status'] as string | undefined))
    call.resume()
    await new Promise((resolve) => call.once('close', resolve))
    return code
  }

  test('T12: h2load with more streams than allowed: at most 100 at once, all get a response', async (t) => {
    const requests = isFull ? 50_000 : 2000
    await using folder = await temporaryFolder()
    writeFileSync(folder.file('message'), frameMessage(Buffer.alloc(0)))
    const { stdout } = await promisify(execFile)(
      'h2load',
      [
        '-n',
        String(requests),
        // Two connections open as many unary calls as a subscription may have open.
        '-c',
        '2',
        '-m',
        '500',
        '-H',
        'content-type: application/grpc',
        '-H',
        'te: trailers',
        '-H',
        `x-token: ${gateway.token}`,
        '-d',
        folder.file('message'),
        `http://${gateway.grpc}${PING}`,
      ],
      { timeout: 120_000 },
    )
    const line = /^requests: .*$/m.exec(stdout)?.[0] ?? stdout
    t.diagnostic(line)
    assert.match(line, new RegExp(`${requests} done, ${requests} succeeded, 0 failed`))
    await othersAreServed()
  })
})
