import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { create, fromBinary, type MessageInitShape, toBinary } from '@bufbuild/protobuf'
import { type FileDescriptorProto, FileDescriptorProtoSchema, FileDescriptorSetSchema } from '@bufbuild/protobuf/wkt'
import { Metadata, status } from '@grpc/grpc-js'
import { suspendSubscription } from '../../src/access/provisioning/subscriptions.ts'
import { createDecodedStreams } from '../../src/gateway/geyser/decoded/streams.ts'
import { systemClock } from '../../src/platform/process/clock.ts'
import { until } from '../../src/platform/process/test-wait.ts'
import {
  type ServerReflectionRequestSchema as RequestSchema,
  ServerReflectionRequestSchema,
  ServerReflectionResponseSchema,
} from '../../src/solana/gen/reflection_pb.ts'
import { type GrpcGateway, openStream, startGrpcGateway, tokenMetadata } from '../support/gateway/grpc.ts'

/** gRPC reflection as grpcurl and similar tools use it, with @grpc/grpc-js. */

const ROOT = join(import.meta.dirname, '../..')
const V1 = '/grpc.reflection.v1.ServerReflection/ServerReflectionInfo'
const V1ALPHA = '/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo'

type Asked = NonNullable<MessageInitShape<typeof RequestSchema>['messageRequest']>

/** Decoded shreds are served, and none arrives. */
const decoded = () =>
  createDecodedStreams(
    { filtersMax: 4, pendingBytesMax: 65_536 },
    {
      clock: systemClock,
      source: { read: () => ({ [Symbol.dispose]: () => undefined }) },
      meter: { delivered: () => undefined, lost: () => undefined },
    },
  )

describe('gRPC reflection', () => {
  let service: GrpcGateway
  let token: string
  const streams = decoded()

  before(async () => {
    // No node: reflection is served by the gateway itself.
    service = await startGrpcGateway([], { refusalDelayMs: 0 }, undefined, streams)
    ;({ token } = await service.gateway.subscribe({}))
  })
  after(async () => {
    await service[Symbol.asyncDispose]()
    streams[Symbol.dispose]()
  })

  const bytesOf = (messageRequest: Asked) =>
    toBinary(ServerReflectionRequestSchema, create(ServerReflectionRequestSchema, { host: 'here', messageRequest }))

  async function ask(messageRequest: Asked, path = V1, on = { client: service.client, token }) {
    const stream = openStream(on.client, path, tokenMetadata(on.token))
    stream.send(bytesOf(messageRequest))
    stream.call.end()
    assert.equal((await stream.ended).code, status.OK)
    assert.equal(stream.messages.length, 1)
    const response = fromBinary(ServerReflectionResponseSchema, stream.messages[0] as Buffer)
    assert.equal(response.validHost, 'here')
    assert.deepEqual(response.originalRequest?.messageRequest, messageRequest)
    return response.messageResponse
  }

  async function filesFor(messageRequest: Asked, path = V1): Promise<FileDescriptorProto[]> {
    const response = await ask(messageRequest, path)
    assert.ok(response.case === 'fileDescriptorResponse', JSON.stringify(response))
    return response.value.fileDescriptorProto.map((bytes) => fromBinary(FileDescriptorProtoSchema, bytes))
  }

  for (const path of [V1, V1ALPHA]) {
    test(`${path}: lists the services`, async () => {
      const response = await ask({ case: 'listServices', value: '' }, path)
      assert.ok(response.case === 'listServicesResponse')
      assert.deepEqual(
        response.value.service.map(({ name }) => name),
        [
          'geyser.Geyser',
          'grpc.health.v1.Health',
          'grpc.reflection.v1.ServerReflection',
          'grpc.reflection.v1alpha.ServerReflection',
          'shredstream.ShredstreamProxy',
        ],
      )
    })

    test(`${path}: a method, a nested type and a file lead to the file and its imports`, async () => {
      for (const asked of [
        { case: 'fileContainingSymbol', value: 'geyser.Geyser' },
        { case: 'fileContainingSymbol', value: 'geyser.Geyser.Subscribe' },
        { case: 'fileContainingSymbol', value: 'geyser.SubscribeRequest' },
        { case: 'fileByFilename', value: 'geyser.proto' },
      ] as const) {
        const files = await filesFor(asked, path)
        assert.deepEqual(
          files.map(({ name }) => name),
          ['geyser.proto', 'google/protobuf/timestamp.proto', 'solana-storage.proto'],
          asked.value,
        )
      }
    })
  }

  test('the descriptors are those of the files in proto/, as buf compiles them', async () => {
    const buf = join(ROOT, 'test/node_modules/@bufbuild/buf/bin/buf')
    const args = [buf, 'build', 'proto', '--exclude-source-info', '--as-file-descriptor-set', '-o', '-#format=binpb']
    const compiled = fromBinary(FileDescriptorSetSchema, execFileSync(process.execPath, args, { cwd: ROOT }))
    const own = compiled.file.filter(({ name }) => !name.startsWith('google/'))
    assert.equal(own.length, 6)
    for (const expected of own) {
      const [served] = await filesFor({ case: 'fileByFilename', value: expected.name })
      assert.deepEqual(served, expected, expected.name)
    }
  })

  async function listed(on: { client: GrpcGateway['client']; token: string }): Promise<string[]> {
    const response = await ask({ case: 'listServices', value: '' }, V1, on)
    assert.ok(response.case === 'listServicesResponse')
    return response.value.service.map(({ name }) => name).filter((name) => !name.startsWith('grpc.'))
  }

  test('a subscription with decoded shreds alone reads the list too', async () => {
    const only = await service.gateway.subscribe({ products: ['shreds-decoded'] })
    assert.deepEqual(await listed({ client: service.client, token: only.token }), [
      'geyser.Geyser',
      'shredstream.ShredstreamProxy',
    ])
  })

  test('only what a listener serves is listed', async () => {
    await using without = await startGrpcGateway([])
    const of = async (gateway: GrpcGateway) => {
      const { token: ofGateway } = await gateway.gateway.subscribe({})
      return listed({ client: gateway.client, token: ofGateway })
    }
    assert.deepEqual(await of(without), ['geyser.Geyser'])
    using others = decoded()
    await using entries = await startGrpcGateway([], { serves: 'entries' }, undefined, others)
    assert.deepEqual(await of(entries), ['shredstream.ShredstreamProxy'])
  })

  test('what is not known is an error response with NOT_FOUND, and the stream goes on', async () => {
    const stream = openStream(service.client, V1, tokenMetadata(token))
    const asked: Asked[] = [
      { case: 'fileByFilename', value: '../../etc/passwd' },
      { case: 'fileContainingSymbol', value: 'geyser.Nothing' },
      { case: 'fileContainingSymbol', value: '__proto__' },
      { case: 'fileContainingExtension', value: { containingType: 'geyser.Geyser', extensionNumber: 1 } as never },
      { case: 'allExtensionNumbersOfType', value: 'geyser.Nothing' },
    ]
    for (const one of asked) stream.send(bytesOf(one))
    stream.send(bytesOf({ case: 'allExtensionNumbersOfType', value: 'geyser.SubscribeRequest' }))
    stream.call.end()
    assert.equal((await stream.ended).code, status.OK)
    const responses = stream.messages.map((bytes) => fromBinary(ServerReflectionResponseSchema, bytes).messageResponse)
    const last = responses.pop()
    assert.equal(responses.length, asked.length)
    for (const response of responses)
      assert.ok(response.case === 'errorResponse' && response.value.errorCode === status.NOT_FOUND)
    assert.ok(last?.case === 'allExtensionNumbersResponse' && last.value.extensionNumber.length === 0)
  })

  test('without a valid token: PERMISSION_DENIED', async () => {
    for (const [path, metadata] of [
      [V1, new Metadata()],
      [V1ALPHA, new Metadata()],
      [V1, tokenMetadata('slc_wrong')],
    ] as const) {
      const stream = openStream(service.client, path, metadata)
      stream.send(bytesOf({ case: 'listServices', value: '' }))
      assert.equal((await stream.ended).code, status.PERMISSION_DENIED)
      assert.equal(stream.messages.length, 0)
    }
  })

  test('each request is charged, and one over the budget is refused by its limit', async () => {
    const poor = await service.gateway.subscribe({ overrides: { unitsPerSecond: 1 } })
    const stream = openStream(service.client, V1, tokenMetadata(poor.token))
    for (let sent = 0; sent < 200; sent += 1) stream.send(bytesOf({ case: 'listServices', value: '' }))
    const ended = await stream.ended
    assert.equal(ended.code, status.RESOURCE_EXHAUSTED, ended.details)
    assert.match(ended.details, /limit: unitsPerSecond/)
    assert.ok(stream.messages.length > 0 && stream.messages.length < 100, `${stream.messages.length}`)
    assert.ok((await stream.headers).get('x-ratelimit-limit').length === 1)
  })

  test('open calls and the size of a request are limited, and a revoked token ends a call', async () => {
    const other = await service.gateway.subscribe({})
    const open = Array.from({ length: 8 }, () => openStream(service.client, V1, tokenMetadata(other.token)))
    for (const stream of open) stream.send(bytesOf({ case: 'listServices', value: '' }))
    await until('all are served', () => open.every(({ messages }) => messages.length === 1))
    const more = openStream(service.client, V1, tokenMetadata(other.token))
    const refused = await more.ended
    assert.equal(refused.code, status.RESOURCE_EXHAUSTED)
    assert.match(refused.details, /limit: reflectionStreams/)

    const [first, ...rest] = open
    first?.send(bytesOf({ case: 'fileContainingSymbol', value: 'x'.repeat(2000) }))
    assert.equal((await first?.ended)?.code, status.INVALID_ARGUMENT)

    await suspendSubscription(service.gateway.on, { subscription: other.id })
    for (const { ended } of rest) {
      const { code, details } = await ended
      assert.equal(code, status.PERMISSION_DENIED)
      assert.match(details, /suspended/)
    }
  })
})
