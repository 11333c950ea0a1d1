import { type Node, SyntaxKind } from 'typescript/unstable/ast'
import * as is from 'typescript/unstable/ast/is'
import { createVirtualFileSystem } from 'typescript/unstable/fs'
import { API } from 'typescript/unstable/sync'

/** Every way one file can name another. */
export type ImportForm = 'static' | 'type' | 're-export' | 'dynamic' | 'require' | 'resolve' | 'url' | 'builtin'
/** The specifier is undefined where the target is an expression instead of a plain string. */
export type Import = { form: ImportForm; specifier: string | undefined; line: number }

export type SourceFacts = {
  path: string
  lines: number
  imports: Import[]
  consoleLines: number[]
  exitLines: number[]
  defaultExportLines: number[]
  starExportLines: number[]
  /** As they are written; undefined where one is computed at run time. */
  regularExpressions: { text: string | undefined; line: number }[]
  /** Each identifier with the first line it occurs in and how often it occurs. */
  names: Map<string, { line: number; count: number }>
  /** Nothing but imports and re-exports: a barrel. */
  onlyPassesOn: boolean
}

/**
 * Parses the files with TypeScript's own parser, so that comments, strings and regular expressions cannot fool a rule.
 * The files are given as text (path to content), so that the real source and planted examples are read by the same code.
 */
export function readSource(files: ReadonlyMap<string, string>): SourceFacts[] {
  const virtual: Record<string, string> = {}
  for (const [path, text] of files) virtual[`/source/${path}`] = text
  virtual['/source/tsconfig.json'] = JSON.stringify({
    compilerOptions: { noResolve: true, noLib: true, types: [], jsx: 'preserve', module: 'nodenext', noEmit: true },
    files: [...files.keys()],
  })
  const parser = new API({ cwd: '/source', fs: createVirtualFileSystem(virtual) })
  try {
    using snapshot = parser.updateSnapshot({ openProjects: ['/source/tsconfig.json'] })
    const project = snapshot.getProjects()[0]
    return [...files].map(([path, text]) => {
      const parsed = project?.program.getSourceFile(`/source/${path}`)
      if (parsed === undefined) throw new Error(`the parser did not read ${path}`)
      return readFacts(path, text, parsed)
    })
  } finally {
    parser.close()
  }
}

function readFacts(path: string, text: string, root: Node & { statements: Iterable<Node> }): SourceFacts {
  const lineStarts = [0, ...text.matchAll(/\n/g).map((newline) => newline.index + 1)]
  const facts: SourceFacts = {
    path,
    lines: text.split('\n').length - (text.endsWith('\n') ? 1 : 0),
    imports: [],
    consoleLines: [],
    exitLines: [],
    defaultExportLines: [],
    starExportLines: [],
    regularExpressions: [],
    names: new Map(),
    onlyPassesOn: passesOn([...root.statements]),
  }
  const lineOf = (node: Node): number => {
    const offset = node.end - 1
    return lineStarts.findLastIndex((start) => start <= offset) + 1
  }
  const addImport = (form: ImportForm, target: Node | undefined, node: Node): void => {
    if (target !== undefined && is.isConditionalExpression(target)) {
      addImport(form, target.whenTrue, node)
      addImport(form, target.whenFalse, node)
      return
    }
    facts.imports.push({ form, specifier: textOf(target), line: lineOf(target ?? node) })
  }
  const addName = (text: string, node: Node): void => {
    const known = facts.names.get(text)
    if (known === undefined) facts.names.set(text, { line: lineOf(node), count: 1 })
    else known.count += 1
  }
  const visit = (node: Node): void => {
    if (is.isIdentifier(node) || is.isPrivateIdentifier(node)) addName(node.text, node)
    readImport(node, addImport)
    if (isMember(node, 'console')) facts.consoleLines.push(lineOf(node))
    if (isMember(node, 'process', 'exit')) facts.exitLines.push(lineOf(node))
    if (isDefaultExport(node)) facts.defaultExportLines.push(lineOf(node))
    readRegularExpression(node, (found) => facts.regularExpressions.push({ text: found, line: lineOf(node) }))
    if (is.isExportDeclaration(node) && node.exportClause === undefined) facts.starExportLines.push(lineOf(node))
    node.forEachChild(visit)
  }
  root.forEachChild(visit)
  return facts
}

function readRegularExpression(node: Node, add: (text: string | undefined) => void): void {
  if (is.isRegularExpressionLiteral(node)) add(node.text)
  else if ((is.isNewExpression(node) || is.isCallExpression(node)) && isNamed(node.expression, 'RegExp')) add(undefined)
}

function readImport(node: Node, add: (form: ImportForm, target: Node | undefined, node: Node) => void): void {
  if (is.isImportDeclaration(node)) {
    const isType = node.importClause?.phaseModifier === SyntaxKind.TypeKeyword
    add(isType ? 'type' : 'static', node.moduleSpecifier, node)
  } else if (is.isExportDeclaration(node)) {
    if (node.moduleSpecifier !== undefined) add('re-export', node.moduleSpecifier, node)
  } else if (is.isImportTypeNode(node)) {
    add('type', is.isLiteralTypeNode(node.argument) ? node.argument.literal : undefined, node)
  } else if (is.isExternalModuleReference(node)) {
    add('require', node.expression, node)
  } else if (is.isVariableDeclaration(node)) {
    // Under another name than `require` its calls would not be seen below.
    const isRenamed =
      node.initializer !== undefined && isCreateRequire(node.initializer) && !isNamed(node.name, 'require')
    if (isRenamed) add('require', undefined, node)
  } else if (is.isNewExpression(node)) {
    // `new URL('./worker.ts', import.meta.url)` is how a worker or child process is named.
    const [target, base] = node.arguments ?? []
    if (isNamed(node.expression, 'URL') && base !== undefined && isImportMeta(base, 'url')) add('url', target, node)
  } else if (is.isCallExpression(node)) {
    const form = callForm(node.expression)
    if (form !== undefined) add(form, node.arguments[0], node)
  }
}

function callForm(callee: Node): ImportForm | undefined {
  if (callee.kind === SyntaxKind.ImportKeyword) return 'dynamic'
  if (isNamed(callee, 'require') || isMember(callee, 'require', 'resolve') || isCreateRequire(callee)) return 'require'
  if (isImportMeta(callee, 'resolve')) return 'resolve'
  if (isMember(callee, 'process', 'getBuiltinModule')) return 'builtin'
  return undefined
}

function isCreateRequire(node: Node): boolean {
  return is.isCallExpression(node) && isNamed(node.expression, 'createRequire')
}

function isDefaultExport(node: Node): boolean {
  if (is.isExportAssignment(node)) return true
  if (is.isExportSpecifier(node)) return node.name.text === 'default'
  return node.kind === SyntaxKind.DefaultKeyword
}

function textOf(node: Node | undefined): string | undefined {
  if (node === undefined) return undefined
  return is.isStringLiteral(node) || is.isNoSubstitutionTemplateLiteral(node) ? node.text : undefined
}

function isNamed(node: Node, name: string): boolean {
  return is.isIdentifier(node) && node.text === name
}

/** `object.member`, `object['member']`, also behind globalThis; any member when none is named. */
function isMember(node: Node, object: string, member?: string): boolean {
  const [target, key] = is.isPropertyAccessExpression(node)
    ? [node.expression, node.name.text]
    : is.isElementAccessExpression(node)
      ? [node.expression, textOf(node.argumentExpression)]
      : []
  if (target === undefined) return false
  const isObject = isNamed(target, object) || isMember(target, 'globalThis', object)
  return isObject && (member === undefined || member === key)
}

function isImportMeta(node: Node, member: string): boolean {
  return is.isPropertyAccessExpression(node) && is.isMetaProperty(node.expression) && node.name.text === member
}

function passesOn(statements: Node[]): boolean {
  const reExports = statements.filter((node) => is.isExportDeclaration(node) && node.moduleSpecifier !== undefined)
  return reExports.length > 0 && statements.every((node) => is.isImportDeclaration(node) || reExports.includes(node))
}
