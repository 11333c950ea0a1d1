/**
 * Generates `src/solana/gen/` from `proto/` with the pinned buf and protoc-gen-es, without any network.
 * With `--check` nothing is written: it fails when the committed code is not what the proto text gives.
 */
import { execFileSync } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const root = join(import.meta.dirname, '..')
const committedFolder = join(root, 'src/solana/gen')

const temporaryFolder = mkdtempSync(join(tmpdir(), 'sluice-proto-'))
try {
  if (process.argv.includes('--check')) {
    generateInto(temporaryFolder)
    const stale = differingFiles(committedFolder, temporaryFolder)
    if (stale.length > 0) {
      process.stderr.write(`stale generated code: ${stale.join(', ')}; run scripts/generate-proto.ts\n`)
      process.exitCode = 1
    }
  } else {
    generateInto(temporaryFolder)
    rmSync(committedFolder, { recursive: true, force: true })
    generateInto(committedFolder)
  }
} finally {
  rmSync(temporaryFolder, { recursive: true, force: true })
}

function generateInto(outFolder: string): void {
  const template = {
    version: 'v2',
    plugins: [
      {
        // Run by this very Node, so that the shebang of the plugin cannot pick an older one.
        local: [process.execPath, join(root, 'node_modules/@bufbuild/protoc-gen-es/bin/protoc-gen-es')],
        out: outFolder,
        // erasable_syntax: enums as objects, which Node can run by stripping types.
        opt: ['target=ts', 'import_extension=ts', 'erasable_syntax=true'],
      },
    ],
  }
  execFileSync(
    process.execPath,
    [join(root, 'node_modules/@bufbuild/buf/bin/buf'), 'generate', 'proto', '--template', JSON.stringify(template)],
    { cwd: root, stdio: ['ignore', 'inherit', 'inherit'] },
  )
}

function differingFiles(committed: string, fresh: string): string[] {
  const names = new Set([...readdirSync(committed), ...readdirSync(fresh)])
  return [...names].filter((name) => read(join(committed, name)) !== read(join(fresh, name)))
}

function read(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}
