import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createDocuments } from './documents.ts'

const RPC = 'https://rpc.example.net'
const LOCAL = 'http://127.0.0.1:8899'

async function urlsFor(
  servers: { rpc?: string; execution?: string },
  sender?: string,
): Promise<(string | undefined)[]> {
  const documents = createDocuments()
  const of = (['rpc', 'sender', 'execution'] as const).map((server) => documents.docsUrlOf(server))
  assert.deepEqual(
    of.map((docsUrl) => docsUrl('internal')),
    [undefined, undefined, undefined],
    'before the addresses are known',
  )
  await documents.publish({ endpoints: { ...servers, sender, missing: [] }, servers, isServedHere: false })
  return of.map((docsUrl) => docsUrl('rate-limited'))
}

test('the page of an error is on the server itself, else on the other one that serves documents', async () => {
  const page = `${RPC}/docs/errors/rate-limited`
  assert.deepEqual(await urlsFor({ rpc: RPC }, 'https://send.example.net'), [page, page, page])
  const execution = 'https://live.example.net'
  assert.deepEqual(await urlsFor({ rpc: RPC, execution }), [page, page, `${execution}/docs/errors/rate-limited`])
  assert.deepEqual(await urlsFor({}), [undefined, undefined, undefined])
})

test('a loopback address is named by loopback listeners only', async () => {
  const local = `${LOCAL}/docs/errors/rate-limited`
  assert.deepEqual(await urlsFor({ rpc: LOCAL }, 'http://127.0.0.1:8901'), [local, local, undefined])
  assert.deepEqual(await urlsFor({ rpc: LOCAL }, 'https://send.example.net'), [local, undefined, undefined])
  assert.deepEqual(await urlsFor({ rpc: LOCAL }), [local, undefined, undefined])
})

test('an unknown code has the page of internal errors', async () => {
  const documents = createDocuments()
  await documents.publish({ endpoints: { rpc: RPC, missing: [] }, servers: { rpc: RPC }, isServedHere: false })
  assert.equal(documents.docsUrlOf('rpc')('no-such-code'), `${RPC}/docs/errors/internal`)
})
