//! Names of the fields of packets and of track events, so that what is not read is told by its name.

/// The name of what a packet carries.
pub(super) fn packet_name(field: u32) -> Option<&'static str> {
    name(PACKETS, field)
}

/// The name of a field of a track event.
pub(super) fn event_name(field: u32) -> Option<&'static str> {
    name(EVENTS, field)
}

fn name(table: &[(u32, &'static str)], field: u32) -> Option<&'static str> {
    table.binary_search_by_key(&field, |(number, _)| *number).ok().map(|place| table[place].1)
}

// They are Perfetto's own, of its release 0.59 for Python.
/// By number.
const PACKETS: &[(u32, &str)] = &[
    (1, "ftrace_events"),
    (2, "process_tree"),
    (4, "inode_file_map"),
    (5, "chrome_events"),
    (6, "clock_snapshot"),
    (7, "sys_stats"),
    (9, "process_stats"),
    (11, "track_event"),
    (33, "trace_config"),
    (34, "ftrace_stats"),
    (35, "trace_stats"),
    (36, "synchronization_marker"),
    (37, "profile_packet"),
    (38, "battery"),
    (39, "android_log"),
    (40, "power_rails"),
    (43, "process_descriptor"),
    (44, "thread_descriptor"),
    (45, "system_info"),
    (46, "trigger"),
    (47, "packages_list"),
    (48, "chrome_benchmark_metadata"),
    (49, "perfetto_metatrace"),
    (50, "compressed_packets"),
    (51, "chrome_metadata"),
    (52, "gpu_counter_event"),
    (53, "gpu_render_stage_event"),
    (54, "streaming_profile_packet"),
    (57, "graphics_frame_event"),
    (60, "track_descriptor"),
    (61, "module_symbols"),
    (62, "vulkan_memory_event"),
    (63, "gpu_log"),
    (64, "deobfuscation_mapping"),
    (65, "vulkan_api_event"),
    (66, "perf_sample"),
    (67, "cpu_info"),
    (68, "smaps_packet"),
    (69, "service_event"),
    (70, "initial_display_state"),
    (71, "gpu_mem_total_event"),
    (72, "extension_descriptor"),
    (73, "memory_tracker_snapshot"),
    (74, "streaming_allocation"),
    (75, "streaming_free"),
    (77, "android_energy_estimation_breakdown"),
    (78, "ui_state"),
    (82, "translation_table"),
    (83, "android_game_intervention_list"),
    (84, "statsd_atom"),
    (86, "android_system_property"),
    (89, "trace_uuid"),
    (90, "track_event_range_of_interest"),
    (91, "entity_state_residency"),
    (95, "etw_events"),
    (99, "v8_js_code"),
    (100, "v8_internal_code"),
    (101, "v8_wasm_code"),
    (102, "v8_reg_exp_code"),
    (103, "v8_code_move"),
    (107, "remote_clock_sync"),
    (109, "chrome_trigger"),
    (110, "pixel_modem_events"),
    (111, "pixel_modem_token_database"),
    (113, "clone_snapshot_trigger"),
    (115, "kernel_wakelock_data"),
    (117, "generic_kernel_task_state_event"),
    (118, "generic_kernel_cpu_freq_event"),
    (119, "cpu_per_uid_data"),
    (120, "generic_kernel_task_rename_event"),
    (122, "generic_kernel_process_tree"),
    (123, "user_list"),
    (124, "trace_provenance"),
    (125, "protovms"),
    (126, "trace_attributes"),
    (127, "android_aflags"),
    (128, "gpu_info"),
    (129, "generic_gpu_frequency_event"),
    (130, "interrupt_info"),
    (131, "art_process_metadata"),
    (132, "journald_event"),
    (133, "zstd_compressed_packets"),
    (134, "concurrent_session_event"),
    (135, "stack_sample"),
    (138, "recovered_trace_info"),
    (900, "for_testing"),
];

/// By number.
const EVENTS: &[(u32, &str)] = &[
    (5, "task_execution"),
    (24, "cc_scheduler_state"),
    (25, "chrome_user_event"),
    (26, "chrome_keyed_service"),
    (27, "chrome_legacy_ipc"),
    (28, "chrome_histogram_sample"),
    (29, "chrome_latency_info"),
    (32, "chrome_frame_reporter"),
    (35, "chrome_message_pump"),
    (38, "chrome_mojo_event_info"),
    (39, "chrome_application_state_info"),
    (40, "chrome_renderer_scheduler_state"),
    (41, "chrome_window_handle_event_info"),
    (43, "chrome_content_settings_event_info"),
    (49, "chrome_active_processes"),
    (50, "screenshot"),
    (55, "callstack"),
    (56, "callstack_iid"),
    (57, "callstack_weight"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_in_order() {
        for table in [PACKETS, EVENTS] {
            assert!(table.windows(2).all(|pair| pair[0].0 < pair[1].0));
        }
        assert_eq!((packet_name(1), packet_name(4711)), (Some("ftrace_events"), None));
        assert_eq!(event_name(25), Some("chrome_user_event"));
    }
}
