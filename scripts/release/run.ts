import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { dirname } from 'node:path'

/** Runs a program of the build and returns its output; throws with everything it printed. */
export function run(program: string, args: readonly string[], cwd: string, env: NodeJS.ProcessEnv = {}): string {
  const { status, stdout, stderr, error } = spawnSync(program, args, {
    cwd,
    env: { ...process.env, ...env },
    encoding: 'utf8',
    maxBuffer: 64 * 2 ** 20,
  })
  if (status === 0) return stdout
  throw new Error(`${program} ${args.join(' ')}: ${error?.message ?? ''}\n${stdout ?? ''}${stderr ?? ''}`)
}

/** npm runs with the Node of this checkout: another version packs different bytes. */
export function npm(folder: string, ...args: string[]): string {
  return run('npm', args, folder, { PATH: `${dirname(process.execPath)}:${process.env['PATH'] ?? ''}` })
}

export function hashOf(path: string, algorithm: 'sha256' | 'md5'): string {
  return createHash(algorithm).update(readFileSync(path)).digest('hex')
}
