import assert from 'node:assert/strict'
import { readdirSync, writeFileSync } from 'node:fs'
import { test } from 'node:test'
import { pathToFileURL } from 'node:url'
import { makeTestFolder } from '../files/test-folder.ts'
import { childEnv, startChild } from './child.ts'

test('a child inherits how memory is taken and where compiled source lies, and nothing else', () => {
  const memory = { MALLOC_ARENA_MAX: '2', MALLOC_MMAP_THRESHOLD_: '131072' }
  assert.deepEqual(childEnv({ ...memory, NODE_COMPILE_CACHE: '/c', HOME: '/h', SLUICE_SECRET: 's' }), {
    ...memory,
    NODE_COMPILE_CACHE: '/c',
  })
  assert.deepEqual(childEnv({}), {})
})

test('what a child compiled is kept, though it is killed: the next one loads no type stripper', async () => {
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
  const beside = pathToFileURL(folder.file('beside.ts')).href
  async function strips(): Promise<unknown> {
    const child = startChild({ name: 'some-child', beside }, { env: { NODE_COMPILE_CACHE: cache } })
    const message = new Promise((resolve) => child.onMessage(resolve))
    const ended = new Promise((resolve) => child.onExit(resolve))
    const first = await Promise.race([message, ended])
    child.kill()
    await ended
    return first
  }
  assert.deepEqual(await strips(), { isStripping: true })
  assert.ok(readdirSync(cache).length > 0)
  assert.deepEqual(await strips(), { isStripping: false })
})
