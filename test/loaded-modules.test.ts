import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import { join, posix } from 'node:path'
import { test } from 'node:test'
import { readSource } from './read-source.ts'

const root = join(import.meta.dirname, '..')
const SERVICES = ['gateway', 'sender', 'execution', 'indexer'] as const
/** Loaded where they are needed, or by the control plane only. */
const STORES = ['pg', 'node:sqlite', 'smol-toml', 'zod', '@clack/prompts', 'esbuild']

const imports = importsOfSource()

test('the control plane of `sluice serve` loads no service that runs in a thread, and no client of a database it does not use', () => {
  const loaded = loadedBy('src/processes/serve.ts')
  assert(loaded.has('src/processes/compose/threads/control-plane.ts'))
  for (const service of SERVICES) assert.equal(pathTo(loaded, `src/${service}/service.ts`), undefined)
  for (const name of ['pg', '@bufbuild/protobuf']) assert.equal(pathTo(loaded, name), undefined)
})

for (const service of SERVICES)
  test(`the thread of ${service} loads its service only, and neither the schema of the configuration nor the store`, () => {
    const loaded = loadedBy(`src/processes/threads/${service}.ts`)
    assert(loaded.has(`src/${service}/service.ts`))
    for (const other of SERVICES)
      if (other !== service) assert.equal(pathTo(loaded, `src/${other}/service.ts`), undefined)
    // The sender keeps its tips in a database of its own.
    for (const name of STORES)
      if (service !== 'sender' || name !== 'node:sqlite') assert.equal(pathTo(loaded, name), undefined)
    assert.equal(pathTo(loaded, 'src/access/store/open.ts'), undefined)
  })

test('a bench needs no package of test/package.json, which are hundreds of megabytes', () => {
  const { dependencies } = JSON.parse(readFileSync(join(root, 'test/package.json'), 'utf8')) as {
    dependencies: Record<string, string>
  }
  const isOfTests = (loaded: string) => Object.keys(dependencies).some((name) => `${loaded}/`.startsWith(`${name}/`))
  const benches = [...imports.keys()].filter((path) => path.startsWith('bench/'))
  assert(benches.includes('bench/work.ts'))
  for (const bench of benches) {
    const loaded = loadedBy(bench)
    assert.deepEqual(
      [...loaded.keys()].filter(isOfTests).map((name) => pathTo(loaded, name)),
      [],
    )
  }
})

/** What each file loads before it runs: not types, and not what it imports later. */
function importsOfSource(): ReadonlyMap<string, readonly string[]> {
  const paths = ['src/**/*.ts', 'bench/**/*.ts', 'test/{support,request-cost}/*.ts', 'scripts/*.ts']
    .flatMap((pattern) => globSync(pattern, { cwd: root }))
    .filter((path) => !path.endsWith('.test.ts'))
  const files = readSource(new Map(paths.map((path) => [path, readFileSync(join(root, path), 'utf8')])))
  return new Map(
    files.map(({ path, imports }) => [
      path,
      imports.flatMap(({ form, specifier }) => {
        if (specifier === undefined || (form !== 'static' && form !== 're-export')) return []
        return specifier.startsWith('.') ? [posix.join(posix.dirname(path), specifier)] : [specifier]
      }),
    ]),
  )
}

/** Every file and package that is loaded with the entry, and the file that loads it first. */
function loadedBy(entry: string): ReadonlyMap<string, string | undefined> {
  const loaded = new Map<string, string | undefined>([[entry, undefined]])
  for (const path of loaded.keys())
    for (const next of imports.get(path) ?? []) if (!loaded.has(next)) loaded.set(next, path)
  return loaded
}

/** How the entry comes to load the target, for the message of a failed check; undefined where it does not. */
function pathTo(loaded: ReadonlyMap<string, string | undefined>, target: string): string | undefined {
  if (!loaded.has(target)) return undefined
  const from = loaded.get(target)
  return from === undefined ? target : `${pathTo(loaded, from)} > ${target}`
}
