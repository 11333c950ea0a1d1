import assert from 'node:assert/strict'
import { readdirSync, writeFileSync } from 'node:fs'
import { test } from 'node:test'
import { pathToFileURL } from 'node:url'
import { makeTestFolder } from '../files/test-folder.ts'
import { childEnv, startChild } from './child.ts'

test('a child inherits the allocator settings, the compile cache and the libraries of Node, and no other variable', () => {
  const inherited = {
    MALLOC_ARENA_MAX: '2',
    MALLOC_MMAP_THRESHOLD_: '131072',
    NODE_COMPILE_CACHE: '/c',
    LD_LIBRARY_PATH: '/l',
  }
  assert.deepEqual(childEnv({ ...inherited, HOME: '/h', SLUICE_SECRET: 's' }), inherited)
  assert.deepEqual(childEnv({}), {})
})

test('the compile cache survives the kill of a child: the next one loads no type stripper', async () => {
  using folder = makeTestFolder()
  const host = JSON.stringify(new URL('./child.ts', import.meta.url).href)
  writeFileSync(
    folder.file('some-child.ts'),
    `import { keepCompiledSource } from ${host}
     keepCompiledSource()
     const isStripping: boolean = process.moduleLoadList.includes('NativeModule internal/deps/amaro/dist/index')
     process.send?.({ isStripping })
     process.on('message', () => {})`,
  )
  const cache = folder.file('cache')
  const entry = pathToFileURL(folder.file('some-child.ts'))
  async function strips(): Promise<unknown> {
    await using child = startChild(entry, { env: { NODE_COMPILE_CACHE: cache } })
    const message = new Promise((resolve) => child.onMessage(resolve))
    return await Promise.race([message, child.exited])
  }
  assert.deepEqual(await strips(), { isStripping: true })
  assert.ok(readdirSync(cache).length > 0)
  assert.deepEqual(await strips(), { isStripping: false })
})

test('a disposed child has exited, and disposing it again does nothing', async () => {
  using folder = makeTestFolder()
  writeFileSync(folder.file('child.mjs'), `process.on('message', () => {})`)
  const child = startChild(pathToFileURL(folder.file('child.mjs')))
  await child[Symbol.asyncDispose]()
  assert.deepEqual(await child.exited, { code: null, signal: 'SIGKILL' })
  assert.throws(() => process.kill(child.pid as number, 0), { code: 'ESRCH' })
  assert.equal(child.residentBytes(), undefined)
  child.send('ignored')
  await child[Symbol.asyncDispose]()
})
