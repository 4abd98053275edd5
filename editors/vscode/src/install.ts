// The command that installs SBCL on this machine.
import { readFile } from 'node:fs/promises'
import type { Condition } from './condition.js'

/** True if a message of the server says that there is no Lisp to start. */
export const saysNoSbcl = (message: string): boolean => /\bSBCL is not installed/.test(message)

/** True if Lisp did not start because there is none. */
export const missingSbcl = (condition: Condition): boolean => condition.state === 'dead' && saysNoSbcl(condition.reason)

export interface Installation {
  /** The title of the button. */
  title: string
  command: string
}

/** The command for a system, by what `process.platform` and os-release(5) say of it. */
export function installationOn(platform: string, release: string): Installation {
  if (platform === 'darwin') return { title: 'Install with Homebrew', command: 'brew install sbcl' }
  const families = [...release.matchAll(/^ID(?:_LIKE)?="?([^"\n]*)"?$/gm)].flatMap((match) => (match[1] ?? '').split(' '))
  if (families.includes('fedora') || families.includes('rhel')) return { title: 'Install with dnf', command: 'sudo dnf install sbcl' }
  if (families.includes('arch')) return { title: 'Install with pacman', command: 'sudo pacman -S sbcl' }
  if (families.includes('suse') || families.includes('opensuse')) return { title: 'Install with zypper', command: 'sudo zypper install sbcl' }
  return { title: 'Install with apt', command: 'sudo apt-get install sbcl' }
}

export async function installation(): Promise<Installation> {
  const release = await readFile('/etc/os-release', 'utf8').catch(() => '')
  return installationOn(process.platform, release)
}
