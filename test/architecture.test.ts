import assert from 'node:assert/strict'
import { existsSync, globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { findObjections, findRefusedWords, type Plan } from './architecture.ts'
import { plantedExamples } from './architecture-examples.ts'
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
  'admin',
  'localnet',
]

/** A folder that grows beyond this holds more than one idea. */
const FOLDER_FILES_MAX = 25

/** The plan of the modules. Nothing else states these rules; ARCHITECTURE.md explains them. */
const plan: Plan = {
  modules: {
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
    admin: service(['access']),
    // The chain engine is a native module in a child process, and its ledger is kept in files of its own.
    localnet: {
      ...service(['solana', 'evm']),
      npm: ['litesvm'],
      nodeExtra: ['child_process', 'fs', 'fs/promises', 'module', 'v8'],
    },
    // What the pages look like: theme, charts, tables.
    ui: { layer: 2, sees: ['contract'], node: 'pure', npm: PAGE },
    dashboard: { layer: 3, sees: ['contract', 'ui'], node: 'pure', npm: PAGE },
    console: { layer: 3, sees: ['contract', 'ui'], node: 'pure', npm: PAGE },
    'account-page': { layer: 3, sees: ['contract', 'ui'], node: 'pure', npm: PAGE },

    processes: { layer: 4, sees: SERVICES, node: 'system', npm: [] },
    // Starts processes and queries running ones; nothing imports it.
    cli: { layer: 5, sees: [...SERVICES, 'processes'], node: 'system', npm: [] },
  },
  npmExceptions: [
    { path: /\/options\.ts$/, npm: ['zod'] },
    { path: /^src\/processes\/compose\/config\/config\.ts$/, npm: ['zod'] },
    { path: /^src\/processes\/compose\/pages\/bundle\.ts$/, npm: ['esbuild'] },
    { path: /^src\/cli\//, npm: CLI },
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
  refusedWords: wordsInPlaceOf({
    listener: ['door', 'doors'],
    report: ['told', 'untold', 'tell', 'tells', 'telling'],
    destination: ['seat', 'seats'],
    request: ['wish', 'wishes'],
    collect: ['harvest'],
    response: ['answer', 'answers', 'answered', 'answering', 'unanswered'],
    message: ['says', 'said'],
    check: ['judge', 'judges', 'judged'],
    timeout: ['patience'],
    lease: ['lent'],
    health: ['vitals'],
    client: ['taker', 'takers'],
    'the name of the thing': ['house', 'desk'],
  }),
  nameExceptions: [
    // Former names of fields and of a config key, which stay until 0.2.
    { path: /^src\/(contract\/schemas\/customer|sender\/receipts\/)/, names: ['answer', 'says'] },
    { path: /^src\/cli\/output\/print/, names: ['door', 'gaps_told'] },
    { path: /^src\/gateway\/(options|rpc\/response-cache)/, names: ['answerBytesMax'] },
    // Instructions of the SPL Token-2022 program.
    { path: /./, names: ['harvestToMintEnabled', 'harvestWithheldTokensToMint'] },
  ],
  dependencies: new Set([...Object.keys(packageJson.dependencies), ...PAGE, 'esbuild']),
}

function wordsInPlaceOf(refused: Readonly<Record<string, readonly string[]>>): ReadonlyMap<string, string> {
  return new Map(Object.entries(refused).flatMap(([word, earlier]) => earlier.map((each) => [each, word])))
}

function service(more: string[]): Plan['modules'][string] {
  return { layer: 3, sees: ['core', 'contract', 'platform', ...more], node: 'service', npm: [] }
}

describe('the source', () => {
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

  test('follows the plan', () => {
    const objections = findObjections(files, plan).map(({ rule, at, message }) => `${at}: ${message} [${rule}]`)
    assert.deepEqual(objections, [])
  })

  test('has no refused word in an identifier or file name, in tests, benches and scripts too', () => {
    const others = readSource(readFiles('{test,scripts,bench,examples}/**/*.ts'))
    const refused = others.flatMap((file) => [...findRefusedWords(file, plan)])
    assert.deepEqual(
      refused.map(({ at, message }) => `${at}: ${message}`),
      [],
    )
  })

  test('cites only documents that exist', () => {
    const missing: string[] = []
    for (const [path, text] of readFiles('{src,bench}/**/*.{ts,tsx}')) {
      for (const line of text.split('\n')) {
        const comment = /^\s*(?:\/\*\*|\*|\/\/)(.*)/.exec(line)?.[1]
        // A document of another project has its folder there.
        for (const [, name = ''] of comment?.matchAll(/([\w./-]+\.md)\b/g) ?? [])
          if (!name.startsWith('doc/') && !existsSync(join(root, name))) missing.push(`${path}: ${name}`)
      }
    }
    assert.deepEqual(missing, [])
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

  test('exports nothing that no other file imports', () => {
    const all = readFiles('{src,test,scripts,bench,examples}/**/*.{ts,tsx,mjs}')
    const written = new Map([...all].filter(([path]) => !plan.generated.test(path)))
    assert.deepEqual(findUnusedExports(written), [])
  })

  test('has a line for every module in ARCHITECTURE.md, which names files that exist', () => {
    const lines = readFileSync(join(root, 'ARCHITECTURE.md'), 'utf8').matchAll(/^\| `([\w-]+)` \|(.*)$/gm)
    const named = new Map([...lines].map(([, module = '', text = '']) => [module, text.matchAll(/`([\w/-]+\.tsx?)`/g)]))
    assert.deepEqual(new Set(named.keys()), new Set(Object.keys(plan.modules)))
    const there = new Set(files.map(({ path }) => path))
    for (const [module, names] of named)
      for (const [, name] of names) assert.ok(there.has(`src/${module}/${name}`), `src/${module}/${name}`)
  })

  test('has every file that a path through the code in ARCHITECTURE.md names', () => {
    const rows = tableRows('## Seven paths', '## Where to begin')
    assert.deepEqual(
      rows.flatMap((row) => missingFiles(row, 'src/')),
      [],
    )
    assert.ok(rows.length > 70, `${rows.length} rows`)
  })

  test('has every file that ARCHITECTURE.md names in the tables of processes, bounds and where to add what', () => {
    const rows = [...tableRows('**Bounds.**', '## Seven paths'), ...tableRows('## Processes', '## Other folders')]
    const added = tableRows('## Where to add what', '### A new command')
    assert.deepEqual(
      [...rows.flatMap((row) => missingFiles(row, 'src/')), ...added.flatMap((row) => missingFiles(row, ''))],
      [],
    )
    assert.ok(rows.length > 30 && added.length > 50, `${rows.length} and ${added.length} rows`)
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

describe('the rules refuse', () => {
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

  test('nothing in files that follow the plan', () => {
    const found = findObjections(
      readPlanted({
        'src/core/clock.ts': `import assert from 'node:assert/strict'\nexport const clock = (x: number): number => { switch (x) { default: assert.ok(x); return x } }`,
        'src/platform/files.ts': `import { readFileSync } from 'node:fs'\nimport pino from 'pino'\nexport const read = () => [readFileSync, pino]`,
        'src/access/options.ts': `import * as z from 'zod'\nimport { clock } from '../core/clock.ts'\nexport const options = [z, clock]`,
        'src/access/authorize.ts': `// console.log(1)\nexport const clickHouse = { storyteller: 1 }\nimport type { Server } from 'node:http'\nexport const text = "import x from 'express'; console.log()"\nexport const pattern = /import 'y'|^(?:_\\d+)*$|\\{\\s*(\\w+)\\s*:|[a-z]+/\nexport type S = Server`,
        'src/access/authorize.test.ts': `import test from 'node:test'\nimport fc from 'fast-check'\nimport { text } from './admit.ts'\nimport { open } from '../../test/support/process/serve.ts'\nconsole.log(test, fc, text, open)`,
        'src/cli/commands/status.ts': `import { run } from '@stricli/core'\nimport { text } from '../../access/admit.ts'\nconsole.log(run, text)\nprocess.exit(1)\nexport const lazy = () => import('../../access/options.ts')`,
        'src/cli/define.ts': `export const load = () => import('./run.ts')\nexport type Flags = { x: 1 }`,
        'src/cli/commands/run.ts': `import type { Flags } from './define.ts'\nexport const run = (flags: Flags) => flags`,
        'src/gateway/options.ts': `export const cache = { answerBytesMax: 1 }`,
        'src/solana/gen/geyser.ts': `export * from '@bufbuild/protobuf'`,
      }),
      plan,
    )
    assert.deepEqual(found, [])
  })

  test('an export that no other file imports, unless it is a type that its own file uses', () => {
    const owner = [
      'export const a = 1',
      'export function b() {}',
      'export class C {}',
      '/** `D` in a comment is no use. */',
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

function readPlanted(files: Record<string, string>): SourceFacts[] {
  return readSource(new Map(Object.entries(files)))
}

function readFiles(pattern: string): Map<string, string> {
  const paths = globSync(pattern, { cwd: root, exclude: ['**/node_modules'] }).toSorted()
  return new Map(paths.map((path) => [path, readFileSync(join(root, path), 'utf8')]))
}

/** The rows of the tables, and the steps of the lists, between two places of ARCHITECTURE.md. */
function tableRows(from: string, to: string): string[] {
  const text = readFileSync(join(root, 'ARCHITECTURE.md'), 'utf8')
  assert.ok(text.includes(from) && text.includes(to))
  return text.slice(text.indexOf(from), text.indexOf(to)).match(/^(?:\| (?!---)|\d+\. ).*$/gm) ?? []
}

/** The files that a row names and that do not exist. A name without a folder is in the folder named last before it, as that page says. */
function missingFiles(row: string, base: string): string[] {
  let folder = ''
  const missing: string[] = []
  for (const [, name = ''] of row.matchAll(/`([\w./-]+(?:\.tsx?|\.md|\.sql|\/))`/g)) {
    if (name.includes('/')) folder = name.slice(0, name.lastIndexOf('/'))
    // The files that each module has.
    else if (folder === '') continue
    const path = `${base}${name.includes('/') ? name : `${folder}/${name}`}`
    if (!existsSync(join(root, path))) missing.push(path)
  }
  return missing
}
