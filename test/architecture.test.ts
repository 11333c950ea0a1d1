import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { findObjections, type Plan } from './architecture.ts'
import { readSource, type SourceFacts } from './read-source.ts'
import { findUnusedExports } from './unused-exports.ts'

const root = join(import.meta.dirname, '..')
const packageJson = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
  dependencies: Record<string, string>
}

/** Bundled into the page before anything is served: no part of what an installation without development packages runs. */
const PAGE = ['preact', '@preact/signals', 'uplot', 'sigma', 'graphology', 'graphology-layout-forceatlas2']
const CLI = ['@stricli/core', '@stricli/auto-complete', '@clack/prompts', 'string-width', 'csv-stringify']

/** What the processes and the command line compose. */
const SERVICES = [
  'core',
  'contract',
  'platform',
  'access',
  'upstreams',
  'gateway',
  'shreds',
  'sender',
  'indexer',
  'execution',
  'localnet',
]

/** A folder that grows beyond this holds more than one idea. */
const FOLDER_FILES_MAX = 25

/** The plan of the house. Nothing else states these rules; ARCHITECTURE.md explains them. */
const plan: Plan = {
  rooms: {
    core: { layer: 0, sees: [], node: 'pure', npm: [] },

    contract: { layer: 1, sees: ['core'], node: 'service', npm: ['zod'] },
    solana: { layer: 1, sees: ['core'], node: 'pure', npm: ['@bufbuild/protobuf', '@scure/base'] },
    evm: { layer: 1, sees: ['core'], node: 'pure', npm: [] },
    platform: { layer: 1, sees: ['core'], node: 'system', npm: 'all' },

    access: { layer: 2, sees: ['core', 'contract', 'platform'], node: 'service', npm: [] },
    upstreams: { layer: 2, sees: ['core', 'contract', 'platform', 'solana'], node: 'service', npm: [] },

    gateway: service(['solana', 'access', 'upstreams']),
    sender: service(['solana', 'access', 'upstreams']),
    indexer: service(['solana', 'access', 'upstreams']),
    shreds: service(['solana', 'access']),
    execution: service(['evm', 'access']),
    // The chain engine is a native module in a child process, and its ledger is kept in files of its own.
    localnet: {
      ...service(['solana', 'evm']),
      npm: ['litesvm'],
      nodeExtra: ['child_process', 'fs', 'fs/promises', 'module', 'v8'],
    },
    dashboard: { layer: 3, sees: ['contract'], node: 'pure', npm: PAGE },

    processes: { layer: 4, sees: SERVICES, node: 'system', npm: [] },
    // Starts processes and asks running ones; nothing imports it.
    cli: { layer: 5, sees: [...SERVICES, 'processes'], node: 'system', npm: [] },
  },
  npmExceptions: [
    { position: /\/options\.ts$/, npm: ['zod'] },
    { position: /^src\/processes\/compose\/config\/config\.ts$/, npm: ['zod'] },
    { position: /^src\/processes\/compose\/services\/page-bundle\.ts$/, npm: ['esbuild'] },
    { position: /^src\/cli\//, npm: CLI },
  ],
  pureNode: ['assert', 'assert/strict', 'buffer', 'crypto'],
  serviceNode: [
    'assert',
    'assert/strict',
    'buffer',
    'crypto',
    'events',
    'path',
    'stream',
    'stream/promises',
    'url',
    'util',
    'zlib',
  ],
  consoleFiles: /^src\/cli\//,
  exitFiles: /^src\/(processes|cli)\//,
  generated: /^src\/solana\/gen\//,
  linesMax: 400,
  dependencies: new Set([...Object.keys(packageJson.dependencies), ...PAGE, 'esbuild']),
}

function service(more: string[]): Plan['rooms'][string] {
  return { layer: 3, sees: ['core', 'contract', 'platform', ...more], node: 'service', npm: [] }
}

describe('the house', () => {
  const files = readSource(readFiles('src/**/*.{ts,tsx}'))

  test('was read: there are files, and they import', () => {
    const imports = files.flatMap((file) => file.imports)
    assert.ok(files.length >= 20, `saw ${files.length} files`)
    assert.ok(imports.length >= files.length, `saw ${imports.length} imports`)
    for (const form of ['static', 'type'] as const)
      assert.ok(
        imports.some((used) => used.form === form),
        form,
      )
  })

  test('stands as drawn in the plan', () => {
    const objections = findObjections(files, plan).map(({ rule, at, message }) => `${at}: ${message} [${rule}]`)
    assert.deepEqual(objections, [])
  })

  test('uses every package that package.json lists as a dependency', () => {
    const program = files.filter(({ path }) => !path.endsWith('.test.ts'))
    const used = new Set(program.flatMap((file) => file.imports.map(({ specifier }) => specifier ?? '')))
    const isUsed = (name: string): boolean => used.values().some((path) => path === name || path.startsWith(`${name}/`))
    assert.deepEqual(
      [...plan.dependencies].filter((name) => !isUsed(name)),
      [],
    )
  })

  test('exports nothing that nobody imports', () => {
    const all = readFiles('{src,test,scripts,bench,examples}/**/*.{ts,tsx,mjs}')
    const written = new Map([...all].filter(([path]) => !plan.generated.test(path)))
    assert.deepEqual(findUnusedExports(written), [])
  })

  test('has a line for every room in ARCHITECTURE.md, which names files that are there', () => {
    const lines = readFileSync(join(root, 'ARCHITECTURE.md'), 'utf8').matchAll(/^\| `(\w+)` \|(.*)$/gm)
    const named = new Map([...lines].map(([, module = '', text = '']) => [module, text.matchAll(/`([\w/-]+\.tsx?)`/g)]))
    assert.deepEqual(new Set(named.keys()), new Set(Object.keys(plan.rooms)))
    const there = new Set(files.map(({ path }) => path))
    for (const [module, names] of named)
      for (const [, name] of names) assert.ok(there.has(`src/${module}/${name}`), `src/${module}/${name}`)
  })

  test('has no folder of more than 25 source files, tests and generated code aside', () => {
    const counts = new Map<string, number>()
    for (const { path } of files) {
      const name = path.split('/').at(-1) ?? ''
      if (plan.generated.test(path) || /\.test\.tsx?$/.test(name) || name.startsWith('test-')) continue
      const folder = path.slice(0, path.lastIndexOf('/'))
      counts.set(folder, (counts.get(folder) ?? 0) + 1)
    }
    assert.deepEqual(
      [...counts].filter(([, count]) => count > FOLDER_FILES_MAX),
      [],
    )
    assert.ok([...counts.values()].some((count) => count > FOLDER_FILES_MAX / 2))
  })

  test('has no hand-written file of more than 400 lines', () => {
    const written = readFiles('{test,scripts,bench,examples}/**/*.ts')
    const long = [...written].filter(([, text]) => text.split('\n').length > plan.linesMax + 1).map(([path]) => path)
    assert.deepEqual(long, [])
  })
})

describe('the rule can say no', () => {
  for (const { name, rule, files } of plantedExamples()) {
    test(name, () => {
      const found = findObjections(readPlanted(files), plan)
      assert.deepEqual(
        found.map((objection) => objection.rule),
        [rule],
        JSON.stringify(found),
      )
    })
  }

  test('and says nothing about a good house', () => {
    const found = findObjections(
      readPlanted({
        'src/core/clock.ts': `import assert from 'node:assert/strict'\nexport const clock = (x: number): number => { switch (x) { default: assert.ok(x); return x } }`,
        'src/platform/files.ts': `import { readFileSync } from 'node:fs'\nimport pino from 'pino'\nexport const read = () => [readFileSync, pino]`,
        'src/access/options.ts': `import * as z from 'zod'\nimport { clock } from '../core/clock.ts'\nexport const options = [z, clock]`,
        'src/access/authorize.ts': `// console.log(1)\nimport type { Server } from 'node:http'\nexport const text = "import x from 'express'; console.log()"\nexport const pattern = /import 'y'|^(?:_\\d+)*$|\\{\\s*(\\w+)\\s*:|[a-z]+/\nexport type S = Server`,
        'src/access/authorize.test.ts': `import test from 'node:test'\nimport fc from 'fast-check'\nimport { text } from './admit.ts'\nimport { house } from '../../test/whole-sluice.ts'\nconsole.log(test, fc, text, house)`,
        'src/cli/commands/status.ts': `import { run } from '@stricli/core'\nimport { text } from '../../access/admit.ts'\nconsole.log(run, text)\nprocess.exit(1)\nexport const lazy = () => import('../../access/options.ts')`,
        'src/cli/define.ts': `export const load = () => import('./run.ts')\nexport type Flags = { x: 1 }`,
        'src/cli/commands/run.ts': `import type { Flags } from './define.ts'\nexport const run = (flags: Flags) => flags`,
        'src/solana/gen/geyser.ts': `export * from '@bufbuild/protobuf'`,
      }),
      plan,
    )
    assert.deepEqual(found, [])
  })

  test('to an export that nobody imports, but not to a type that its own file uses', () => {
    const owner = [
      'export const a = 1',
      'export function b() {}',
      'export class C {}',
      'export type D = 1',
      'export type E = 1',
      'export const f = (): E => 1',
    ].join('\n')
    const unusedBeside = (...users: string[]): string[] =>
      findUnusedExports(
        new Map([['src/core/x.ts', owner], ...users.map((text, at) => [`test/${at}.ts`, text] as [string, string])]),
      )
    const left = (...names: string[]): string[] => names.map((name) => `src/core/x.ts: ${name}`)
    assert.deepEqual(unusedBeside(), left('a', 'b', 'C', 'D', 'f'))
    assert.deepEqual(unusedBeside(`import {\n  a,\n  type D,\n} from '../src/core/x.ts'`), left('b', 'C', 'f'))
    assert.deepEqual(unusedBeside(`import { a, b as B, C, f } from '../src/core/x.ts'`), left('D'))
    assert.deepEqual(unusedBeside(`export type { D } from '../src/core/x.ts'`), left('a', 'b', 'C', 'f'))
    assert.deepEqual(unusedBeside(`import { a } from '../src/core/y.ts'`), left('a', 'b', 'C', 'D', 'f'))
    for (const whole of [`import * as x from '../src/core/x.ts'`, `const x = () => import('../src/core/x.ts')`])
      assert.deepEqual(unusedBeside(whole), [])
  })

  test('reads every form of import', () => {
    const [facts] = readPlanted({
      'src/core/all.ts': [
        `import { a } from './1.ts'`,
        `import './2.ts'`,
        `import type { B } from './3.ts'`,
        `import { type C } from './4.ts'`,
        `export { d } from './5.ts'`,
        `export type { E } from './6.ts'`,
        `export * as f from './7.ts'`,
        `type G = import('./8.ts').G`,
        'const h = await import(`./9.ts`)',
        `import i = require('./10.ts')`,
        `const j = require('./11.ts')`,
        `const k = import.meta.resolve('./12.ts')`,
        `const l = new Worker(new URL('./13.ts', import.meta.url))`,
        `const m = process.getBuiltinModule('node:fs')`,
        `const n = require.resolve('./14.ts')`,
        `const o = await import(a + b)`,
        `const p = createRequire(import.meta.url)('./15.ts')`,
        `const q = createRequire(import.meta.url)`,
        `const r = new URL(isSource ? './16.ts' : './16.js', import.meta.url)`,
      ].join('\n'),
    })
    assert.deepEqual(
      facts?.imports.map(({ form, specifier, line }) => `${line} ${form} ${specifier}`),
      [
        '1 static ./1.ts',
        '2 static ./2.ts',
        '3 type ./3.ts',
        '4 static ./4.ts',
        '5 re-export ./5.ts',
        '6 re-export ./6.ts',
        '7 re-export ./7.ts',
        '8 type ./8.ts',
        '9 dynamic ./9.ts',
        '10 require ./10.ts',
        '11 require ./11.ts',
        '12 resolve ./12.ts',
        '13 url ./13.ts',
        '14 builtin node:fs',
        '15 require ./14.ts',
        '16 dynamic undefined',
        '17 require ./15.ts',
        '18 require undefined',
        '19 url ./16.ts',
        '19 url ./16.js',
      ],
    )
  })
})

type Planted = { name: string; rule: string; files: Record<string, string> }

function plantedExamples(): Planted[] {
  const one = (name: string, rule: string, path: string, text: string): Planted => ({
    name,
    rule,
    files: { [path]: text },
  })
  return [
    one('a room not on the plan', 'room', 'src/billing/invoice.ts', 'export const x = 1'),
    one('a file outside every room', 'room', 'src/main.ts', 'export const x = 1'),
    one(
      'an import of a room not on the plan',
      'room',
      'src/processes/serve.ts',
      `import { x } from '../billing/x.ts'; x()`,
    ),
    one('sideways between services', 'direction', 'src/gateway/route.ts', `import { x } from '../sender/x.ts'; x()`),
    one('sideways on floor 1', 'direction', 'src/contract/x.ts', `import { x } from '../platform/x.ts'; x()`),
    one('upward', 'direction', 'src/core/x.ts', `import { x } from '../access/x.ts'; x()`),
    one(
      'upward, only a type',
      'direction',
      'src/core/x.ts',
      `import type { X } from '../access/x.ts'; export type Y = X`,
    ),
    one('upward, an inline type', 'direction', 'src/core/x.ts', `export type Y = import('../access/x.ts').X`),
    one('upward, when it runs', 'direction', 'src/core/x.ts', `export const x = () => import('../access/x.ts')`),
    one('upward, passed on', 'direction', 'src/core/x.ts', `export { x } from '../access/x.ts'; export const y = 1`),
    one(
      'upward, as a worker',
      'direction',
      'src/core/x.ts',
      `export const x = new URL('../access/x.ts', import.meta.url)`,
    ),
    one('upward, in a test', 'direction', 'src/core/x.test.ts', `import { x } from '../access/x.ts'; x()`),
    one('down to a room it must not see', 'direction', 'src/execution/x.ts', `import { x } from '../solana/x.ts'; x()`),
    one('localnet from a service', 'direction', 'src/gateway/x.ts', `import { x } from '../localnet/x.ts'; x()`),
    one('out of src', 'outside', 'src/core/x.ts', `import { x } from '../../scripts/x.ts'; x()`),
    one(
      'a test helper from the program',
      'outside',
      'src/core/x.ts',
      `import { x } from '../../test/whole-sluice.ts'; x()`,
    ),
    one('a test from the program', 'outside', 'src/core/x.ts', `import { x } from './y.test.ts'; x()`),
    one(
      'an import that cannot be read',
      'unreadable',
      'src/processes/x.ts',
      `export const x = (y: string) => import(y)`,
    ),
    one(
      'a library outside platform',
      'npm',
      'src/gateway/pubsub/ws.ts',
      `import { WebSocket } from 'ws'; new WebSocket('')`,
    ),
    one(
      'a type of a library outside platform',
      'npm',
      'src/gateway/pubsub/ws.ts',
      `import type { WebSocket } from 'ws'; export type X = WebSocket`,
    ),
    one('zod outside contract and options', 'npm', 'src/access/plan.ts', `import * as z from 'zod'; z.string()`),
    one(
      'the command-line library in a service app',
      'npm',
      'src/processes/serve.ts',
      `import { run } from '@stricli/core'; run()`,
    ),
    one('a library not among the dependencies', 'npm', 'src/platform/x.ts', `import fc from 'fast-check'; fc()`),
    one('a built-in without node:', 'npm', 'src/platform/x.ts', `import fs from 'fs'; fs()`),
    one('I/O in a pure room', 'node', 'src/solana/x.ts', `import { readFileSync } from 'node:fs'; readFileSync('')`),
    one(
      'a type of I/O in a pure room',
      'node',
      'src/evm/x.ts',
      `import type { Socket } from 'node:net'; export type X = Socket`,
    ),
    one('I/O in a service', 'node', 'src/gateway/x.ts', `import { createServer } from 'node:http'; createServer()`),
    one('I/O by the back door', 'node', 'src/gateway/x.ts', `process.getBuiltinModule('node:fs')`),
    one('process as a module', 'node', 'src/platform/x.ts', `import { exit } from 'node:process'; exit(1)`),
    one('console in a service', 'console', 'src/gateway/x.ts', `console.log(1)`),
    one('console behind globalThis', 'console', 'src/platform/x.ts', `globalThis.console.error(1)`),
    one('console in an app that is not the command line', 'console', 'src/processes/serve.ts', `console.log(1)`),
    one('process.exit outside processes and cli', 'exit', 'src/platform/x.ts', `process.exit(1)`),
    one("process['exit'] outside processes and cli", 'exit', 'src/platform/x.ts', `process['exit'](1)`),
    one('a default export', 'default-export', 'src/core/x.ts', `export default function x() {}`),
    one('a default value', 'default-export', 'src/core/x.ts', `export default 1`),
    one(
      'a default export under another name',
      'default-export',
      'src/core/x.ts',
      `const x = 1; export { x as default }`,
    ),
    ...[
      '/(a+)+$/',
      '/^(\\s*x?\\s*)*y/',
      '/^\\s*\\s*:/',
      '/\\{\\s*[^}]*\\}/',
      '/^(\\w|_)*$/',
      '/^(?:a+b?)+$/',
      '/\\s+$/',
      '/"[^x]*x/',
      "new RegExp('x')",
      "RegExp('x', 'g')",
    ].map((regex) => one(`the regular expression ${regex}`, 'regex', 'src/core/x.ts', `export const x = ${regex}`)),
    one('a barrel by name', 'barrel', 'src/core/index.ts', `export const x = 1`),
    one('a barrel by content', 'barrel', 'src/core/x.ts', `export { y } from './y.ts'`),
    one('a star export', 'barrel', 'src/core/x.ts', `export * from './y.ts'; export const x = 1`),
    one('a file of 401 lines', 'length', 'src/core/x.ts', `export const x = 1\n${'//\n'.repeat(400)}`),
    {
      name: 'a cycle',
      rule: 'cycle',
      files: {
        'src/core/a.ts': `import { b } from './b.ts'; export const a = () => b`,
        'src/core/b.ts': `import { c } from './c.ts'; export const b = () => c`,
        'src/core/c.ts': `export { a as c } from './a.ts'; export const e = 1`,
        'src/core/d.ts': `import { a } from './a.ts'; export const d = a`,
      },
    },
  ]
}

function readPlanted(files: Record<string, string>): SourceFacts[] {
  return readSource(new Map(Object.entries(files)))
}

function readFiles(pattern: string): Map<string, string> {
  const paths = globSync(pattern, { cwd: root }).toSorted()
  return new Map(paths.map((path) => [path, readFileSync(join(root, path), 'utf8')]))
}
