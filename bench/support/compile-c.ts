import { spawnSync } from 'node:child_process'
import { join } from 'node:path'

/** Compiles `bench/reference/NAME.c` into the folder and returns the program's path. */
export function compileC(folder: string, name: string): string {
  const target = join(folder, name)
  const source = join(import.meta.dirname, '../reference', `${name}.c`)
  const { status, stderr } = spawnSync('gcc', ['-O2', '-o', target, source], { encoding: 'utf8' })
  if (status !== 0) throw new Error(`gcc: ${stderr}`)
  return target
}
