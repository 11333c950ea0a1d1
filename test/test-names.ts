/** The names of the tests in a file, as far as they are literals. */
export function testNames(source: string): string[] {
  return [...source.matchAll(/\b(?:test|it|describe)\(\s*(['"`])(.*?)\1/g)].map(([, , name]) => name ?? '')
}
