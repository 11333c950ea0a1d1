import assert from 'node:assert/strict'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { request } from 'node:https'
import type { AddressInfo } from 'node:net'
import { test } from 'node:test'
import { makeTestCert } from '../../src/platform/net/test-cert.ts'
import { type FrontKind, LISTENER_PORTS, startFrontSample } from '../support/machine/proxy-samples.ts'

const KIB = 1024
/** Bytes of a URL that pass: all that the SQL endpoint accepts (288 KiB with the header fields), in HAProxy what its buffer holds. */
const URL_BYTES = { nginx: 280 * KIB, caddy: 280 * KIB, haproxy: 60 * KIB } as const satisfies Record<FrontKind, number>

for (const kind of Object.keys(URL_BYTES) as FrontKind[]) {
  test(`${kind}: parameters of a query in a long URL reach the SQL endpoint`, async () => {
    using cert = makeTestCert('localhost')
    const behind = createServer({ maxHeaderSize: 288 * KIB }, ({ url = '' }, response) => response.end(`${url.length}`))
    await once(behind.listen(0, '127.0.0.1'), 'listening')
    try {
      const { port } = behind.address() as AddressInfo
      const ports = Object.fromEntries(Object.keys(LISTENER_PORTS).map((name) => [name, port]))
      await using front = await startFrontSample(kind, ports as Record<keyof typeof LISTENER_PORTS, number>, cert)
      for (const bytes of [20 * KIB, URL_BYTES[kind]]) {
        const path = `/?param_x=${'1'.repeat(bytes - 10)}`
        assert.deepEqual(await get(front.ports.indexer, path, cert.cert), { status: 200, text: String(bytes) })
      }
    } finally {
      behind.closeAllConnections()
      behind.close()
    }
  })
}

function get(port: number, path: string, ca: string): Promise<{ status: number; text: string }> {
  return new Promise((resolve, reject) => {
    const tls = { ca: readFileSync(ca), servername: 'localhost', family: 4, agent: false }
    const call = request(`https://localhost:${port}${path}`, tls, (response) => {
      let text = ''
      response.on('data', (chunk: Buffer) => (text += chunk.toString()))
      response.on('end', () => resolve({ status: response.statusCode ?? 0, text }))
    })
    call.on('error', reject)
    call.end()
  })
}
