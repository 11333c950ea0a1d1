/**
 * Generates `src/solana/gen/` from `proto/` with the pinned buf and protoc-gen-es, without any network.
 * With `--check` nothing is written: it fails when the committed code is not what the proto text gives.
 */
import { execFileSync } from 'node:child_process'
import { copyFileSync, existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { readIfThere } from '../src/platform/files/optional.ts'
import { prepareTestPackages } from './test-packages.ts'

const root = join(import.meta.dirname, '..')
const committedFolder = join(root, 'src/solana/gen')

if (!prepareTestPackages((line) => process.stderr.write(`${line}\n`))) process.exit(1)
const temporaryFolder = mkdtempSync(join(tmpdir(), 'sluice-proto-'))
try {
  generateInto(temporaryFolder)
  const stale = differingFiles(committedFolder, temporaryFolder)
  if (!process.argv.includes('--check')) replaceFiles(stale)
  else if (stale.length > 0) {
    process.stderr.write(`stale generated code: ${stale.join(', ')}; run scripts/generate-proto.ts\n`)
    process.exitCode = 1
  }
} finally {
  rmSync(temporaryFolder, { recursive: true, force: true })
}

function generateInto(outFolder: string): void {
  const template = {
    version: 'v2',
    plugins: [
      {
        // Run with this Node, because the shebang of the plugin could pick an older one.
        local: [process.execPath, join(root, 'node_modules/@bufbuild/protoc-gen-es/bin/protoc-gen-es')],
        out: outFolder,
        // erasable_syntax: enums as objects, which Node can run by stripping types.
        opt: ['target=ts', 'import_extension=ts', 'erasable_syntax=true'],
      },
    ],
  }
  execFileSync(
    process.execPath,
    [
      join(root, 'test/node_modules/@bufbuild/buf/bin/buf'),
      'generate',
      'proto',
      '--template',
      JSON.stringify(template),
    ],
    { cwd: root, stdio: ['ignore', 'inherit', 'inherit'] },
  )
}

/** Replaces only changed files, one by one, so that a process running from this checkout always finds every file. */
function replaceFiles(names: readonly string[]): void {
  for (const name of names) {
    const fresh = join(temporaryFolder, name)
    if (existsSync(fresh)) copyFileSync(fresh, join(committedFolder, name))
    else rmSync(join(committedFolder, name))
    process.stdout.write(`src/solana/gen/${name} ${existsSync(fresh) ? 'written' : 'removed'}\n`)
  }
}

function differingFiles(committed: string, fresh: string): string[] {
  const names = new Set([...readdirSync(committed), ...readdirSync(fresh)])
  return [...names].filter((name) => readIfThere(join(committed, name)) !== readIfThere(join(fresh, name)))
}
