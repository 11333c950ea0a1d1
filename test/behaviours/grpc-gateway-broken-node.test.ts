import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { frameMessage } from '../../src/platform/grpc/framing.ts'
import { GrpcCode } from '../../src/platform/grpc/status.ts'
import { until } from '../../src/platform/process/test-wait.ts'
import {
  DATA,
  END_HEADERS,
  END_STREAM,
  fields,
  HEADERS,
  http2Frame,
  PADDED,
  RST_STREAM,
  responseFields,
  startFrameNode,
} from '../support/gateway/frame-node.ts'
import { type GrpcGateway, openStream, SUBSCRIBE, startGrpcGateway, tokenMetadata } from '../support/gateway/grpc.ts'

const MESSAGE = frameMessage(Buffer.from('update'))
const LOST = 'the node behind this call is lost'

const headers = (id: number, list = responseFields()) => http2Frame(HEADERS, END_HEADERS, id, list)
const data = (id: number, bytes: Uint8Array = MESSAGE, flags = 0) => http2Frame(DATA, flags, id, bytes)
const trailers = (id: number, list: Readonly<Record<string, string>> = {}) =>
  http2Frame(HEADERS, END_HEADERS | END_STREAM, id, fields({ 'grpc-status': '0', ...list }))

/** Nodes, and proxies before nodes, whose responses are not those of a gRPC server. */
describe('the gRPC gateway before a node that violates the protocol', () => {
  let node: Awaited<ReturnType<typeof startFrameNode>>
  let on: GrpcGateway
  let customer: { readonly token: string; readonly id: string }

  before(async () => {
    node = await startFrameNode()
    on = await startGrpcGateway([{ name: 'broken', grpc: `http://127.0.0.1:${node.port}` }])
    customer = await on.gateway.subscribe({})
  })
  after(async () => {
    await on[Symbol.asyncDispose]()
    await node[Symbol.asyncDispose]()
  })

  /** One stream: its messages and its status, when nothing of it is left open. */
  async function streamOf(respond: (id: number) => readonly Buffer[]) {
    node.onCall(respond)
    const stream = openStream(on.client, SUBSCRIBE, tokenMetadata(customer.token))
    let initial: object = {}
    void stream.headers.then((metadata) => (initial = metadata.getMap()))
    let status: { code: number; details: string; metadata: { getMap(): object } } | undefined
    void stream.ended.then((ended) => (status = ended))
    await until('it has ended', () => status !== undefined)
    await until('nothing is open', () => on.server.openCalls === 0)
    assert.equal(on.gateway.access.permits.taken(customer.id).grpcStreams, 0)
    const messages = stream.messages.map(String)
    return { code: status?.code, details: status?.details, messages, initial, trailing: status?.metadata.getMap() }
  }

  const isLost = { code: GrpcCode.unavailable, details: LOST, messages: [] as string[] }
  async function assertLost(respond: (id: number) => readonly Buffer[]): Promise<void> {
    const { code, details, messages } = await streamOf(respond)
    assert.deepEqual({ code, details, messages }, isLost)
  }

  it('data without valid headers before it ends the call', async () => {
    await assertLost((id) => [headers(id, responseFields({ 'X-Upper': 'case' })), data(id), trailers(id)])
    await assertLost((id) => [data(id), http2Frame(RST_STREAM, 0, id, Buffer.of(0, 0, 0, 2))])
    await assertLost((id) => [data(id, MESSAGE, END_STREAM)])
  })

  it('a page of a proxy is not sent to the customer, with which status it comes, and need not end', async () => {
    const html = Buffer.from('<html><body>It works!</body></html>')
    await assertLost((id) => [headers(id, responseFields({ 'content-type': 'text/html' })), data(id, html, END_STREAM)])
    await assertLost((id) => [headers(id, fields({ ':status': '502', 'content-type': 'text/html' })), data(id, html)])
  })

  it('a message that is cut is a lost node, although the node says OK', async () => {
    await assertLost((id) => [headers(id), data(id, MESSAGE.subarray(0, 7)), trailers(id)])
    await assertLost((id) => [
      headers(id),
      data(id, Buffer.concat([Buffer.of(200), MESSAGE]), PADDED),
      data(id),
      trailers(id),
    ])
  })

  it('a status among the headers ends the call where no trailers follow, and drops no message', async () => {
    const early = (id: number) => headers(id, responseFields({ 'grpc-status': '5', 'grpc-message': 'early' }))
    const followed = await streamOf((id) => [early(id), data(id), trailers(id)])
    assert.deepEqual([followed.code, followed.messages], [GrpcCode.ok, ['update']])
    assert.ok(!('grpc-status' in followed.initial))
    const alone = await streamOf((id) => [early(id), data(id, Buffer.alloc(0), END_STREAM)])
    assert.deepEqual([alone.code, alone.details], [GrpcCode.notFound, 'early'])
  })

  it('a field that HTTP/2 forbids to send is left out of headers and trailers', async () => {
    const forbidden = { 'http2-settings': 'AAMAAABk' }
    const own = { 'x-own': '1' }
    const { code, messages, initial, trailing } = await streamOf((id) => [
      headers(id, responseFields({ ...forbidden, ...own })),
      data(id),
      trailers(id, { ...forbidden, ...own, 'grpc-status': '3' }),
    ])
    assert.deepEqual([code, messages], [GrpcCode.invalidArgument, ['update']])
    for (const metadata of [initial, trailing] as Record<string, string>[])
      assert.deepEqual([metadata['x-own'], metadata['http2-settings']], ['1', undefined])
  })

  it('the message of a status arrives with the spaces at its ends', async () => {
    const { details } = await streamOf((id) => [
      headers(id),
      trailers(id, { 'grpc-status': '3', 'grpc-message': '%20filter of%20' }),
    ])
    assert.equal(details, ' filter of ')
  })
})
