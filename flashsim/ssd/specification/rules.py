"""Rules of the drive's state that do little, as plain Python, which calls them several times as fast as their compiled forms."""

from flashsim.core.kernel import in_python
from flashsim.ssd import timing
from flashsim.ssd.state import flash_array, geometry, pacing, write_buffer

block_of, die_of_block = in_python(geometry.block_of), in_python(geometry.die_of_block)
channel_of, pool_of_block = in_python(geometry.channel_of), in_python(geometry.pool_of_block)
is_one_program, empty_slots = in_python(flash_array.is_one_program), in_python(flash_array.empty_slots)
start_program, programmed = in_python(flash_array.start_program), in_python(flash_array.programmed)
find_entry, sector_mask = in_python(write_buffer.find_entry), in_python(write_buffer.sector_mask)
acknowledge = in_python(pacing.acknowledge)
needs_medium, left_at_stop = in_python(write_buffer.needs_medium), in_python(timing.left_at_stop)
