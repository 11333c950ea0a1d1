import assert from 'node:assert/strict'
import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises'
import { type IncomingHttpHeaders, request } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { gunzipSync } from 'node:zlib'
import { type Logger, silentLogger } from '../../src/platform/telemetry/logger.ts'
import { openPage } from '../../src/processes/compose/pages/live.ts'
import { startTestExecution } from '../support/execution/start.ts'

describe('the build of the page', { timeout: 120_000 }, () => {
  let folder: string
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'sluice-build-'))
  })
  after(() => rm(folder, { recursive: true, force: true }))

  test('runs once for the same sources, also when requested concurrently', async () => {
    const target = join(folder, 'once')
    const opened = await Promise.all([1, 2, 3].map(() => openPage({ target })))
    assert.ok(opened.some(({ built }) => built))
    assert.equal((await openPage({ target })).built, false)
    assert.equal((await readdir(target)).length, 1, 'nothing half-made is left')
    const [first, ...others] = opened.map(({ files }) => files.map(({ path, etag }) => `${path} ${etag}`))
    for (const other of others) assert.deepEqual(other, first)
  })

  test('names no path of the machine, in whichever folder it runs', async () => {
    const before = process.cwd()
    process.chdir(folder)
    try {
      const { page } = await openPage({ target: join(folder, 'elsewhere') })
      const client = Buffer.from(page('/page/execution-stream.js')?.body ?? []).toString()
      assert.match(client, /^\/\/ \.\.\/client\/event-buffer\.ts$/m)
      assert.ok(!client.includes(before))
    } finally {
      process.chdir(before)
    }
  })

  test('produces a page without inline script or style, with all its files, named by content hash', async () => {
    const { page } = await openPage({ target: join(folder, 'once') })
    const html = Buffer.from(page('/')?.body ?? []).toString()
    assert.doesNotMatch(html, /<script(?![^>]*\bsrc=)|<style|\sstyle=|\son\w+=|https?:/)
    const used = [...html.matchAll(/(?:src|href)="([^"]+)"/g)].map(([, path]) => `/${path}`)
    assert.equal(used.length, 4)
    for (const path of used) {
      assert.match(path, /^\/page\/\w+-\w{8}\.(js|css|svg)$/)
      assert.ok(page(path), path)
    }
    assert.equal(page('/page/../package.json'), undefined)
    assert.ok(page('/page/execution-stream.js'))
    for (const [path, key] of [
      ['/page/openapi.json', 'openapi'],
      ['/page/asyncapi.json', 'asyncapi'],
    ] as const) {
      const description = JSON.parse(Buffer.from(page(path)?.body ?? []).toString()) as Record<string, unknown>
      assert.equal(typeof description[key], 'string', path)
    }
  })

  test('is served gzipped where accepted, immutable where the name has a hash, and with 304 where cached', async () => {
    const { page } = await openPage({ target: join(folder, 'once') })
    await using service = await startTestExecution({ deps: { page } })
    const get = (path: string, headers: Record<string, string>) =>
      new Promise<{ status: number; headers: IncomingHttpHeaders; body: Buffer }>((resolve, reject) => {
        request(`${service.http}${path}`, { headers }, (response) => {
          const parts: Buffer[] = []
          response.on('data', (part: Buffer) => parts.push(part))
          response.on('end', () =>
            resolve({ status: response.statusCode ?? 0, headers: response.headers, body: Buffer.concat(parts) }),
          )
        })
          .on('error', reject)
          .end()
      })
    const plain = await get('/', {})
    const packed = await get('/', { 'accept-encoding': 'br, gzip;q=0.8' })
    assert.deepEqual([plain.headers['content-encoding'], packed.headers['content-encoding']], [undefined, 'gzip'])
    assert.equal(plain.headers.vary, 'accept-encoding')
    assert.deepEqual(gunzipSync(packed.body), plain.body)
    assert.notEqual(packed.headers.etag, plain.headers.etag)
    for (const refused of ['identity', 'gzip;q=0', 'br', 'gzipped'])
      assert.equal((await get('/', { 'accept-encoding': refused })).headers['content-encoding'], undefined, refused)
    assert.equal(plain.headers['cache-control'], 'no-cache')
    const [script = ''] = plain.body.toString().match(/page\/page-\w+\.js/) ?? []
    const hashed = await get(`/${script}`, { 'accept-encoding': 'gzip' })
    assert.equal(hashed.headers['cache-control'], 'public, max-age=31536000, immutable')
    assert(hashed.body.length < gunzipSync(hashed.body).length / 2)
    const again = await get('/', { 'accept-encoding': 'gzip', 'if-none-match': String(packed.headers.etag) })
    assert.deepEqual([again.status, again.body.length], [304, 0])
  })

  test('includes the configured names', async () => {
    const { page } = await openPage({ target: join(folder, 'once'), names: new Map([['0x1', 'One']]) })
    assert.equal(Buffer.from(page('/page/names.json')?.body ?? []).toString(), '{"0x1":"One"}')
  })

  test('logs a warning when it fails, and the service runs without the page', async () => {
    const target = join(folder, 'a file')
    await writeFile(target, '')
    const warnings: string[] = []
    const log: Logger = { ...silentLogger, warn: (...message: unknown[]) => void warnings.push(String(message.at(-1))) }
    const { page } = await openPage({ target, log })
    assert.equal(page('/'), undefined)
    assert.deepEqual(warnings, ['the live page cannot be built, the service runs without it'])
    await assert.rejects(openPage({ target }))
  })
})
