/**
 * Runs the lines and programs of the pages for customers with the newest versions of the packages they name, from the npm registry. Not part of the tests,
 * whose packages are pinned:
 *
 *     node scripts/try-newest-clients.ts
 */
import { execFileSync } from 'node:child_process'
import { readCustomerPages, runSnippet, startCustomerService } from '../test/support/cli/customer-pages.ts'
import { temporaryFolder } from '../test/support/cli/run.ts'

/** Version 2 of web3.js is @solana/kit under its first name; version 1 is still in wide use. */
const KEPT_MAJORS: Readonly<Record<string, string>> = { '@solana/web3.js': '1' }

await using service = await startCustomerService()
for (const { path, packages, snippets } of readCustomerPages()) {
  await using folder = await temporaryFolder()
  const newest = [...packages.keys()].map((name) => `${name}@${KEPT_MAJORS[name] ?? 'latest'}`)
  if (newest.length > 0) {
    execFileSync('npm', ['install', '--no-audit', '--no-fund', ...newest], { cwd: folder.path, stdio: 'inherit' })
    process.stdout.write(execFileSync('npm', ['ls', '--depth=0'], { cwd: folder.path, encoding: 'utf8' }))
  }
  process.stdout.write(`${path}\n`)
  for (const snippet of snippets) {
    const { code, printed } = await runSnippet(snippet, { folder: folder.path, service })
    process.stdout.write(`  ${code === 0 ? 'ok    ' : 'FAILED'} ${snippet.name}\n`)
    if (code === 0) continue
    process.stdout.write(`${printed}\n`)
    process.exitCode = 1
  }
}
