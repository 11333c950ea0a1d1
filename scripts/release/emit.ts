import { globSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { stripTypeScriptTypes } from 'node:module'
import { dirname, join, relative } from 'node:path'

/** Relative imports of every form that names a file: static, re-export, dynamic. */
const RELATIVE_IMPORT = /(\bfrom\s*|\bimport\s*\(?\s*)(['"])(\.{1,2}\/[^'"\n]+)\.ts\2/g

/** Entry points: the command line, and files that are started by name as threads and child processes. */
const ENTRIES = ['cli/main.ts', 'processes/threads/*.ts', '**/*-thread.ts', '**/{thread,child}.ts']

/**
 * Writes the reachable source as JavaScript, with types stripped by the function that Node uses for a checkout. Lines and columns stay the same, so
 * stack traces point into the source without a source map. Returns the written paths.
 */
export function emitJavaScript(sourceFolder: string, targetFolder: string): string[] {
  const open = globSync(ENTRIES, { cwd: sourceFolder, exclude: ['**/test-*'] }).toSorted()
  const written = new Set<string>()
  for (let path = open.pop(); path !== undefined; path = open.pop()) {
    if (written.has(path)) continue
    written.add(path)
    const plain = stripTypeScriptTypes(readFileSync(join(sourceFolder, path), 'utf8'))
    const folder = dirname(path)
    for (const [, , , named] of plain.matchAll(RELATIVE_IMPORT)) open.push(join(folder, `${named}.ts`))
    const target = join(targetFolder, toJs(path))
    mkdirSync(dirname(target), { recursive: true })
    writeFileSync(target, plain.replaceAll(RELATIVE_IMPORT, '$1$2$3.js$2').replaceAll(/[ \t]+$/gm, ''))
  }
  return [...written].map(toJs).toSorted()
}

function toJs(path: string): string {
  return relative('.', path).replace(/\.ts$/, '.js')
}
