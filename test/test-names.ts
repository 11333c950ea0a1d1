/** What the tests of a file are called, as far as the name is written there. */
export function testNames(source: string): string[] {
  return [...source.matchAll(/\b(?:test|it|describe)\(\s*(['"`])(.*?)\1/g)].map(([, , name]) => name ?? '')
}
