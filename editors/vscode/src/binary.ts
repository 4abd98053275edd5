// The place of the binary `consort`. No `vscode` here: it is tested without.
import { accessSync, constants, statSync } from 'node:fs'
import { delimiter, isAbsolute, join } from 'node:path'

export interface Found {
  path: string
  how: 'setting' | 'PATH' | 'bundled'
}

export function isProgram(path: string): boolean {
  try {
    accessSync(path, constants.X_OK)
    return statSync(path).isFile()
  } catch {
    return false
  }
}

/**
 * A program on PATH, or among the places where installers put programs and which a desktop's PATH
 * often lacks.
 */
export function onPath(name: string, environment: NodeJS.ProcessEnv): string | undefined {
  const home = environment['HOME'] ?? ''
  const usual = [...(home === '' ? [] : [join(home, '.cargo', 'bin'), join(home, '.local', 'bin')]), '/usr/local/bin', '/opt/homebrew/bin']
  return [...(environment['PATH'] ?? '').split(delimiter), ...usual]
    // A relative entry would name a directory of the workspace.
    .filter((directory) => isAbsolute(directory))
    .map((directory) => join(directory, name))
    .find(isProgram)
}

/**
 * The binary: that of the setting if there is one (and no other then, so that a wrong setting is
 * noticed), else that on PATH, else the one in the package.
 */
export function findBinary(setting: string, folder: string | undefined, extension: string, environment: NodeJS.ProcessEnv): Found | undefined {
  const home = environment['HOME'] ?? '~'
  const wanted = setting.trim().replace(/^~(?=\/|$)/, home).replaceAll('${workspaceFolder}', folder ?? '')
  if (wanted !== '') {
    if (!wanted.includes('/')) {
      const named = onPath(wanted, environment)
      return named === undefined ? undefined : { path: named, how: 'setting' }
    }
    const path = isAbsolute(wanted) ? wanted : join(folder ?? '', wanted)
    return isProgram(path) ? { path, how: 'setting' } : undefined
  }
  const found = onPath('consort', environment)
  if (found !== undefined) return { path: found, how: 'PATH' }
  const bundled = join(extension, 'bin', 'consort')
  return isProgram(bundled) ? { path: bundled, how: 'bundled' } : undefined
}
