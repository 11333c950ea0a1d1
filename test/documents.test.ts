import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { existsSync, globSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { findDeadLinks, readFences } from './markdown.ts'
import { commandsNamedIn, faultOf } from './support/cli/commands.ts'
import { testNames } from './test-names.ts'

const root = join(import.meta.dirname, '..')
const documents = new Map(
  globSync(['*.md', 'docs/**/*.md'], { cwd: root })
    .toSorted()
    .map((path) => [path, readFileSync(join(root, path), 'utf8')]),
)

describe('documents', () => {
  test('every link has a target', () => {
    assert.ok(documents.size >= 6)
    assert.deepEqual(
      findDeadLinks(documents, (path) => existsSync(join(root, path))),
      [],
    )
  })

  test('a dead link is found', () => {
    const planted = new Map([
      [
        'a.md',
        '# One two\n[b](docs/b.md#here) [self](#one-two) [gone](gone.md) [lost](docs/b.md#lost) [web](https://example.net)',
      ],
      ['docs/b.md', '## Here\n```\n[not a link](x)\n```\n`[nor this](y)` [up](../a.md)'],
    ])
    assert.deepEqual(
      findDeadLinks(planted, (path) => planted.has(path)),
      ['a.md: gone.md', 'a.md: docs/b.md#lost'],
    )
  })

  test('the README names the two commands, and npm has every script that a document names', () => {
    const readme = documents.get('README.md') ?? ''
    for (const command of ['npm ci && npm start', 'npm ci && npm test'])
      assert.ok(readme.includes(`\`\`\`sh\n${command}\n\`\`\``), command)
    assert.match(readFileSync(join(root, '.ci/run'), 'utf8'), /^npm ci\nnpm test$/m)
    const { scripts } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
      scripts: Record<string, string>
    }
    for (const [path, text] of documents) {
      for (const [, name = ''] of text.matchAll(/npm run ([\w:-]+)/g))
        assert.ok(name in scripts, `${path}: npm run ${name}`)
    }
  })

  test('docs/metrics.md has every metric that the source registers', () => {
    const page = documents.get('docs/metrics.md') ?? ''
    const registered = globSync('src/**/*.ts', { cwd: root })
      .filter((path) => !path.includes('test'))
      .flatMap((path) => [...readFileSync(join(root, path), 'utf8').matchAll(/\(\s*'(sluice_[a-z0-9]+_[a-z0-9_]+)'/g)])
      .map(([, name]) => `${name}`)
    assert.ok(registered.length > 150, `${registered.length}`)
    assert.deepEqual(
      registered.filter((name) => !page.includes(`\`${name}\``)),
      [],
    )
  })

  test('every command in a document exists, with its flags', () => {
    const named = [...documents].flatMap(([path, text]) => commandsNamedIn(text).map((line) => ({ path, line })))
    assert.ok(named.length > 300, `${named.length}`)
    const wrong = named.flatMap(({ path, line }) => {
      const fault = faultOf(line)
      return fault === undefined ? [] : [`${path}: ${fault}`]
    })
    assert.deepEqual(wrong, [])
  })

  test('an unknown command is found', () => {
    const planted = [
      'Run `sluice sub lst`, then `./sluice sub list --jsn -o json`.',
      '```sh',
      'sudo -u sluice sluice backup FILE --frce | tail',
      'sluice token rotate acme-prod \\',
      '  --gracee 1h',
      '```',
      'Good: `sluice shred pause|resume`, (`sluice status`), `sluice serve --no-demo`; bad: `sluice shred pause|halt`.',
    ]
    assert.deepEqual(commandsNamedIn(planted.join('\n')).map(faultOf), [
      'there is no command: sluice sub lst',
      'sluice sub list has no --jsn',
      'sluice backup has no --frce',
      'sluice token rotate has no --gracee',
      undefined,
      undefined,
      undefined,
      'there is no command: sluice shred halt',
    ])
  })

  test('every test that docs/guarantees.md names exists', () => {
    const named = [...(documents.get('docs/guarantees.md') ?? '').matchAll(/\| `([^`]+\.test\.ts)`: ([^|]+) \|$/gm)]
    assert.ok(named.length > 20)
    const missing = named.filter(
      ([, file = '', name = '']) =>
        !testNames(readFileSync(join(root, file), 'utf8')).some((test) => test.startsWith(name)),
    )
    assert.deepEqual(
      missing.map(([, file, name]) => `${file}: ${name}`),
      [],
    )
  })

  for (const [path, text] of documents) {
    // Those need a running service and a token: test/customer-documents.test.ts has both.
    if (path.startsWith('docs/customers/')) continue
    const lines = readFences(text).filter((fence) => fence.info === 'sh run')
    if (lines.length > 0)
      test(`the lines of ${path} work as written`, () =>
        runOnTerminal(`${GIVEN[path] ?? ''}${lines.map((fence) => fence.text).join('')}`))
  }
})

/** What the reader did before the lines. The README has started Sluice in the same folder, which made the store. */
const GIVEN: Readonly<Record<string, string>> = {
  'README.md': './sluice init --host 127.0.0.1 --config trial.toml --state .sluice\n',
}

/** Runs the lines in an empty folder that has only `./sluice`, on a terminal, as the reader would. */
function runOnTerminal(lines: string): void {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-documents-'))
  try {
    symlinkSync(join(root, 'sluice'), join(folder, 'sluice'))
    writeFileSync(join(folder, 'lines.sh'), `set -eux -o pipefail\n${lines}`)
    const { status, stdout } = spawnSync('script', ['-qefc', 'bash lines.sh', '/dev/null'], {
      cwd: folder,
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'inherit'],
      timeout: 120_000,
    })
    assert.equal(status, 0, stdout)
  } finally {
    rmSync(folder, { recursive: true })
  }
}
