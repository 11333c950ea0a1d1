/** The width of the terminal. Undefined where there is none, and where it does not report one: some containers, serial lines and remote shells have 0. */
export function terminalColumns({ columns }: { readonly columns?: number }): number | undefined {
  return columns !== undefined && columns > 0 ? columns : undefined
}

/** Whether a picture can be drawn and drawn again. A dumb terminal, such as the shell of an editor, prints what moves the cursor. */
export function isScreen({ env, stdout }: Pick<NodeJS.Process, 'env' | 'stdout'>): boolean {
  return stdout.isTTY && env['TERM'] !== 'dumb'
}
